# SPDX-License-Identifier: LGPL-2.1-or-later
"""GROMACS's own regression tests: "python3 -m regressiontests.run" in the root."""
