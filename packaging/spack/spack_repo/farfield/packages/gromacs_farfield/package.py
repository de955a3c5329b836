# SPDX-License-Identifier: LGPL-2.1-or-later

from spack_repo.builtin.packages.gromacs.package import CMakeBuilder as GromacsBuilder
from spack_repo.builtin.packages.gromacs.package import Gromacs

from spack.package import *


class GromacsFarfield(Gromacs):
    """GROMACS with the FMM backend farfield. It has all variants of the package gromacs."""

    version("@GROMACS_VERSION@", sha256="@GROMACS_SHA256@", preferred=True)
    for other in ("@:2026.2", "@main"):
        conflicts(other, msg="the patch is made for GROMACS @GROMACS_VERSION@")

    resource(
        name="farfield",
        url="file://@ARCHIVE@",
        sha256="@SHA256@",
        placement="farfield-source",
    )
    depends_on("farfield@@VERSION@")
    depends_on("farfield+cuda", when="+cuda")
    for number in Gromacs.cuda_arch_values:
        depends_on(f"farfield cuda_arch={number}", when=f"+cuda cuda_arch={number}")

    def patch(self):
        super().patch()
        Executable("farfield-source/gromacs_patch/apply.sh")(".")


class CMakeBuilder(GromacsBuilder):
    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("GMX_USE_EXT_FMM", True),
            "-DGMX_VERSION_STRING_OF_FORK=farfield-@VERSION@-spack",
        ]
