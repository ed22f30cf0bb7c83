# SPDX-License-Identifier: Apache-2.0
"""Random histories of a table: what is done to it (by_*.py), what must come of it (state.py), what is looked at (checks.py)."""
