# SPDX-License-Identifier: LGPL-2.1-or-later
"""Examples: "python3 -m examples.protein" in the root."""
