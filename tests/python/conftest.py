# SPDX-License-Identifier: LGPL-2.1-or-later
"""What holds for all tests of the Python package."""

import os

# Tests run in several processes, which share a GPU. JAX takes three quarters of the memory of a GPU at its first use.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
