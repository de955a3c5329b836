# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arrays of whatever package that speaks DLPack, in the memory of a GPU."""

import sys
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from . import arguments


def is_on_gpu(x: Any) -> bool:
    """Whether an argument is such an array."""
    cuda = 2  # in DLPack
    return hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] == cuda


def on_host(x: Any) -> NDArray:
    """A copy of an array of whatever package, in double precision."""
    for to_host in ("detach", "cpu", "get"):
        if is_on_gpu(x) and hasattr(x, to_host):
            x = getattr(x, to_host)()
    return np.asarray(x, dtype=float)


def importer(like: Any) -> Callable:
    """The function of the package of an array that takes arrays of others."""
    if hasattr(like, "__array_namespace__"):
        return like.__array_namespace__().from_dlpack
    packages = (sys.modules[kind.__module__.partition(".")[0]] for kind in type(like).__mro__)
    return next(package.from_dlpack for package in packages if hasattr(package, "from_dlpack"))


def reader(core: Any, name: str, dtype: np.dtype, *, each: tuple[int, ...] = (3,), **arrays: Any) -> Callable:
    """A function of the compiled library, which can read the arrays: of a type, of particles or points.

    Raises:
        RuntimeError: the library has no GPU.
        ArrayError: an array has another type, or a shape that is not [n, *each].
    """
    if not hasattr(core, name):
        raise RuntimeError("This farfield was built without CUDA: pass arrays of the host.")
    for argument, array in arrays.items():
        own, shape = str(array.dtype).rpartition(".")[2], tuple(array.shape)
        if own != dtype.name or not shape or shape[1:] != each:
            wanted = ", ".join(map(str, ("n", *each))) if each else "n,"
            raise arguments.ArrayError(
                f"{argument} on the GPU has the type {own} and the shape {shape}, but must have "
                f"{dtype.name} and ({wanted})."
            )
    return getattr(core, name)
