# SPDX-License-Identifier: Apache-2.0
"""The other implementations that the program is held to: PyIceberg, DuckDB's iceberg extension, Spark."""
