# SPDX-License-Identifier: LGPL-2.1-or-later
"""FMM beside PME on the systems of a user, as a page: "farfield report FILE.tpr ..."."""
