# SPDX-License-Identifier: LGPL-2.1-or-later

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Farfield(CMakePackage, CudaPackage):
    """A fast multipole method for molecular dynamics."""

    url = "file://@ARCHIVE@"

    license("LGPL-2.1-or-later")

    version("@VERSION@", sha256="@SHA256@")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("eigen@3.4:3", type="build")
    depends_on("fftw@3.3: precision=float,double")
    depends_on("highway@1.0.3:")
    depends_on("googletest", type="test")

    generator("ninja")

    conflicts("cuda_arch=none", when="+cuda", msg="name the architectures of the GPUs, such as cuda_arch=90")

    def cmake_args(self):
        options = [
            self.define_from_variant("FARFIELD_CUDA", "cuda"),
            self.define("BUILD_TESTING", self.run_tests),
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),
        ]
        if self.spec.satisfies("+cuda"):
            architectures = [f"{number}-real" for number in self.spec.variants["cuda_arch"].value]
            options.append(self.define("CMAKE_CUDA_ARCHITECTURES", architectures))
        return options
