// SPDX-License-Identifier: Apache-2.0
package org.apache.iceberg.rest;

/** The kit's tests of views. */
public class KnutViewCatalogTests extends RESTCompatibilityKitViewCatalogTests {}
