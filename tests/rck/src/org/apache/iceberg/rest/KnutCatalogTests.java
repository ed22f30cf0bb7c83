// SPDX-License-Identifier: Apache-2.0
package org.apache.iceberg.rest;

import java.util.List;
import org.apache.iceberg.catalog.Namespace;
import org.junit.jupiter.api.AfterEach;

/** The kit's tests of tables, with nested namespaces, which the published class leaves out. */
public class KnutCatalogTests extends RESTCompatibilityKitCatalogTests {
  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  /** The published class empties the namespaces of its own tests, which these are not. */
  @AfterEach
  public void dropNested() {
    for (String child : List.of("child", "child1", "child2")) {
      catalog().dropNamespace(Namespace.of("parent", child));
    }
    catalog().dropNamespace(Namespace.of("parent"));
  }
}
