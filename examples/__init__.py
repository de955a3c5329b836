# SPDX-License-Identifier: LGPL-2.1-or-later
"""Examples: "python3 -m examples.protein" in the root."""

import tests  # noqa: F401  # the package farfield of this tree is found then
