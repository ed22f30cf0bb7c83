// SPDX-License-Identifier: Apache-2.0
package org.apache.iceberg.rest;

/** The kit's tests of tables, with nested namespaces, which the published class leaves out. */
public class KnutCatalogTests extends RESTCompatibilityKitCatalogTests {
  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithSlashes() {
    return Boolean.getBoolean("rck.supports-names-with-slashes");
  }
}
