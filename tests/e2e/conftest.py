# SPDX-License-Identifier: Apache-2.0
from lib.fixtures import *  # noqa: F401,F403
