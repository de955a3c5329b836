# SPDX-License-Identifier: LGPL-2.1-or-later
"""GROMACS's own regression tests: "python3 -m regressiontests.run" in the root."""

import tests  # noqa: F401  # the package farfield of this tree is found then
