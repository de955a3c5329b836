# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# GMXRC for csh and tcsh, which have this file open while they read it.

set gmxrc = "`find /proc/$$/fd -lname '*/bin/GMXRC.csh' -printf '%l\n' -quit`"
set gmxrc = "$gmxrc:h"
setenv GMXBIN "$gmxrc"
set gmxrc = "$gmxrc:h"
setenv GMXLDLIB "$gmxrc/lib"
setenv GMXMAN "$gmxrc/share/man"
setenv GMXDATA "$gmxrc/share/gromacs"
setenv PATH "${GMXBIN}:${PATH}"
if ( $?MANPATH ) then
    setenv MANPATH "${GMXMAN}:${MANPATH}"
endif
if ( $?PKG_CONFIG_PATH ) then
    setenv PKG_CONFIG_PATH "${GMXLDLIB}/pkgconfig:${PKG_CONFIG_PATH}"
else
    setenv PKG_CONFIG_PATH "${GMXLDLIB}/pkgconfig"
endif
if ( $?CMAKE_PREFIX_PATH ) then
    setenv CMAKE_PREFIX_PATH "${gmxrc}:${CMAKE_PREFIX_PATH}"
else
    setenv CMAKE_PREFIX_PATH "$gmxrc"
endif
unset gmxrc
