# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arrays of whatever package that speaks DLPack, in the memory of a GPU."""

import sys
from typing import Any, Callable, NamedTuple, Optional

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import arguments
from ._library import _core


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


class GpuArray:
    """Real numbers in the memory of a GPU, for any package that speaks DLPack.

    Args:
        dtype: numpy.float32 or numpy.float64.
        device: the CUDA device.
        address: of memory that outlives the array; None: it has memory of its own.
        stream: the address of the stream that works on it; None: it is not known.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        device: int,
        address: Optional[int] = None,
        stream: Optional[int] = None,
    ):
        self.shape, self.dtype, self.device, self.stream = tuple(shape), np.dtype(dtype), device, stream
        self._numbers = _core.array_on_gpu(self.shape, self.dtype.itemsize, device, address)

    def __len__(self) -> int:
        return self.shape[0]

    def __dlpack__(self, **options: Any) -> Any:
        return self._numbers.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._numbers.__dlpack_device__()

    def __abs__(self) -> NDArray:
        return np.abs(self.get())

    def get(self) -> NDArray:
        """A copy on the host."""
        numbers = np.empty(self.shape, self.dtype)
        _core.copy_numbers(numbers, self._numbers, self.stream)
        return numbers

    def set(self, numbers: ArrayLike) -> None:
        """Copies numbers of the host, as many as there are here."""
        _core.copy_numbers(self._numbers, np.ascontiguousarray(numbers, self.dtype), self.stream)


class Place(NamedTuple):
    """Where the arrays of a call are: the functions of the compiled library for them."""

    suffix: str = ""  # of their names
    more: tuple = ()  # their last arguments

    def function(self, core: Any, name: str) -> Callable:
        """A function of the compiled library."""
        function = getattr(core, name + self.suffix)
        return lambda *given: function(*given, *self.more)


HOST = Place()


def on_stream(stream: Optional[int]) -> Place:
    """A place on a GPU, in order with a stream; None: after all that was given to the GPU before."""
    return Place("_on_gpu", (stream,))


def place_of(
    dtype: np.dtype, vectors: dict[str, Any], numbers: Optional[dict[str, Any]] = None
) -> tuple[Place, Callable, Callable]:
    """The place of arrays by their names: those that have three numbers for each particle, and those that have one.

    Returns:
        The place; what makes an array of some shape there, which the library can fill; what makes of that one of the
        package of the first array.

    Raises:
        RuntimeError: the library has no GPU.
        ArrayError: an array on a GPU has another type or shape.
    """
    numbers = numbers or {}
    arrays = [*vectors.values(), *numbers.values()]
    if not is_on_gpu(arrays[0]):
        return HOST, lambda *shape: np.empty(shape, dtype), lambda array: array
    if not hasattr(_core, "array_on_gpu"):
        raise RuntimeError("This farfield was built without CUDA: pass arrays of the host.")
    for each, some in (((3,), vectors), ((), numbers)):
        for name, array in some.items():
            own, shape = str(array.dtype).rpartition(".")[2], tuple(array.shape)
            if own != dtype.name or not shape or shape[1:] != each:
                wanted = ", ".join(map(str, ("n", *each))) if each else "n,"
                raise arguments.ArrayError(
                    f"{name} on the GPU has the type {own} and the shape {shape}, but must have "
                    f"{dtype.name} and ({wanted})."
                )
    streams = {_stream_of(array) for array in arrays}
    return on_stream(streams.pop() if len(streams) == 1 else None), *_makers(arrays[0], dtype)


def _is_of(package, kind, array):
    """Whether an array is of a package, which need not be there."""
    return package in sys.modules and isinstance(array, getattr(sys.modules[package], kind, ()))


def _makers(like, dtype):
    """What makes new arrays like one, and what makes arrays of its package of them."""
    if _is_of("torch", "Tensor", like):
        return lambda *shape: like.new_empty(shape), lambda array: array
    if _is_of("cupy", "ndarray", like):

        def new(*shape):
            with like.device:
                return sys.modules["cupy"].empty(shape, dtype)

        return new, lambda array: array
    device = like.__dlpack_device__()[1]
    return lambda *shape: GpuArray(shape, dtype, device), _importer(like)


def _stream_of(array):
    """The address of the stream that works on an array; None: it is not known."""
    if _is_of("torch", "Tensor", array):
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
    if _is_of("cupy", "ndarray", array):
        with array.device:
            return sys.modules["cupy"].cuda.get_current_stream().ptr
    return None


def _importer(like: Any) -> Callable:
    """The function of the package of an array that takes arrays of others."""
    if hasattr(like, "__array_namespace__"):
        return like.__array_namespace__().from_dlpack
    packages = (sys.modules[kind.__module__.partition(".")[0]] for kind in type(like).__mro__)
    return next(package.from_dlpack for package in packages if hasattr(package, "from_dlpack"))
