# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks of arguments: each gives the value in the form that the compiled library takes, or names what is wrong."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


class ArrayError(TypeError, ValueError):
    """An array that has the wrong type or the wrong shape."""


def reals(name: str, values: ArrayLike, *shapes: tuple, dtype: DTypeLike = np.float64) -> NDArray:
    """A contiguous array of real numbers. Each shape that it may have has a number or a letter for each dimension."""
    return np.ascontiguousarray(_array(name, values, "iuf", "real numbers", *shapes), dtype=dtype)


def indices(name: str, values: ArrayLike, shape: tuple) -> NDArray:
    """An array of integers."""
    array = _array(name, values, "iu", "integers", shape)
    limit = np.iinfo(np.int32)
    if array.size and (array.min() < limit.min or array.max() > limit.max):
        raise ValueError(f"{name} must be between {limit.min} and {limit.max}.")
    return np.ascontiguousarray(array, dtype=np.int32)


def pairs(name: str, values: ArrayLike) -> NDArray:
    """Pairs of indices, [m, 2]; an empty list of any kind has none."""
    return np.empty((0, 2), np.int32) if np.size(values) == 0 else indices(name, values, ("m", 2))


def rows_of_pairs(name: str, values: ArrayLike, count: int) -> tuple[NDArray, NDArray]:
    """Pairs of indices, [m, 2], as compressed rows: offsets [count + 1], and the partners of each."""
    array = pairs(name, values)
    if array.size and (array.min() < 0 or array.max() >= count):
        raise ValueError(f"An index of {name} is outside the range 0 to {count - 1}.")
    array = array[np.argsort(array[:, 0], kind="stable")]
    ends = np.cumsum(np.bincount(array[:, 0], minlength=count))
    return np.concatenate(([0], ends)).astype(np.int32), np.ascontiguousarray(array[:, 1])


def number(name: str, value: Any) -> float:
    """A real number."""
    return float(_scalar(name, value, "iuf", "a real number"))


def integer(name: str, value: Any) -> int:
    """An integer."""
    return int(_scalar(name, value, "iu", "an integer"))


def box(rows: ArrayLike) -> NDArray:
    """Box vectors as rows, [3, 3], of these or of the edges of a rectangular box, [3]."""
    matrix = reals("box", rows, (3,), (3, 3))
    return np.ascontiguousarray(np.diag(matrix)) if matrix.ndim == 1 else matrix


def precision(dtype: DTypeLike) -> np.dtype:
    """numpy.float32 or numpy.float64."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype is {kind}, but must be float32 or float64.")
    return kind


def flag(name: str, value: Any) -> bool:
    """True or False."""
    return bool(_scalar(name, value, "b", "True or False"))


def text(name: str, value: Any) -> str:
    """A string."""
    return str(_scalar(name, value, "U", "a string"))


def _scalar(name, value, kinds, what):
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in kinds:
        raise TypeError(f"{name} must be {what}, but is {value!r}.")
    return array.item()


def check_shape(name: str, array: Any, *shapes: tuple, what: str = "an array") -> None:
    """That an array of any package has one of the shapes."""
    if not any(
        len(array.shape) == len(shape)
        and all(wanted == size or isinstance(wanted, str) for wanted, size in zip(shape, array.shape))
        for shape in shapes
    ):
        raise ArrayError(f"{_required(name, what, shapes)}, but is {array.dtype} of the shape {list(array.shape)}.")


def _array(name, values, kinds, what, *shapes):
    what = f"an array of {what}"
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ArrayError(f"{_required(name, what, shapes)}, and cannot be made of this: {error}") from error
    check_shape(name, array, *shapes, what=what)
    if array.dtype.kind not in kinds:
        raise ArrayError(f"{_required(name, what, shapes)}, but is {array.dtype} of the shape {list(array.shape)}.")
    return array


def _required(name, what, shapes):
    return f"{name} must be {what} of the shape {' or '.join(f'[{_joined(shape)}]' for shape in shapes)}"


def _joined(shape):
    return ", ".join(map(str, shape))
