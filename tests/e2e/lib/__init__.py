# SPDX-License-Identifier: Apache-2.0
"""What the tests that drive the built program share."""
