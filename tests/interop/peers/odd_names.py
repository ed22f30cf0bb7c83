# SPDX-License-Identifier: Apache-2.0
"""Names of tables that clients spell in other ways on their way (apache/iceberg#17759, iceberg-python#710, #2462)."""

ODD = ["a b", "a+b", "a%b", "é/ü", "foo/bar", "per%2Fcent", "dot.ted"]
