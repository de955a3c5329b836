# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python functions that compiled programs of XLA call, with arrays that they read and fill where these are.

The layouts are those of XLA's foreign function interface, xla/ffi/api/c_api.h, of which versions 0.1 to 0.3 have them.
"""

import ctypes
import functools
import itertools
import math
import secrets
import threading
import weakref
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

import jax.ffi
import numpy as np

from ._library import _core
from .device_arrays import HOST, GpuArray, on_stream

_NAME = "farfield_call"
_TYPES = {11: np.float32, 12: np.float64}
_IS_METADATA, _IS_SCALAR, _EXECUTES = 1, 3, 3
_INTERNAL = 13  # an error of whoever is called


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p)]


def _struct(name, *fields):
    """A structure that begins with its size, and what extends it."""
    start = [("struct_size", c_size_t), ("extension", POINTER(_Extension))]
    return type(name, (ctypes.Structure,), {"_fields_": [*start, *fields]})


_Version = _struct("_Version", ("major", c_int), ("minor", c_int))
_Buffer = _struct("_Buffer", ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64)))
_Buffers = _struct("_Buffers", ("size", c_int64), ("types", c_void_p), ("items", POINTER(POINTER(_Buffer))))
_ErrorArguments = _struct("_ErrorArguments", ("message", c_char_p), ("code", c_int))
_MessageArguments = _struct("_MessageArguments", ("error", c_void_p), ("message", c_char_p))
_DestroyArguments = _struct("_DestroyArguments", ("error", c_void_p))
_StreamArguments = _struct("_StreamArguments", ("context", c_void_p), ("stream", c_void_p))


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("value", POINTER(c_int64))]


_Attributes = _struct(
    "_Attributes",
    ("size", c_int64),
    ("types", POINTER(c_int)),
    ("names", c_void_p),
    ("values", POINTER(POINTER(_Scalar))),
)
_Api = _struct(
    "_Api",
    ("version", _Version),
    ("internal", c_void_p),
    ("create_error", ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))),
    ("message_of_error", ctypes.CFUNCTYPE(None, POINTER(_MessageArguments))),
    ("destroy_error", ctypes.CFUNCTYPE(None, POINTER(_DestroyArguments))),
    ("register", c_void_p),
    ("get_stream", ctypes.CFUNCTYPE(c_void_p, POINTER(_StreamArguments))),
)
_Frame = _struct(
    "_Frame",
    ("api", POINTER(_Api)),
    ("context", c_void_p),
    ("stage", c_int),
    ("operands", _Buffers),
    ("results", _Buffers),
    ("attributes", _Attributes),
)


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("base", _Extension), ("metadata", POINTER(_Metadata))]


def _new(kind, **fields):
    return kind(struct_size=ctypes.sizeof(kind), **fields)


#: Functions that programs call by their numbers, which no other process has.
_functions: Any = weakref.WeakValueDictionary()
_numbers = itertools.count(secrets.randbits(62))
_guard = threading.Lock()


class Call:
    """A function that programs call: of a place, of operands and of results that it fills.

    Operands and results are real numbers in NumPy's arrays, or in a GpuArray if the function has a device that is
    theirs.

    Args:
        function: it has the attribute device, the CUDA device that it works on; -1: the host.
    """

    def __init__(self, function: Any):
        self.function, self.number = function, next(_numbers)
        _functions[self.number] = self


def lower(platform: str, ctx: Any, *operands: Any, call: Call) -> Any:
    """The call in a program for the platform "cpu" or "CUDA", by the rules of jax.interpreters.mlir.

    Whoever keeps the program keeps the call.
    """
    with _guard:
        _register(platform)
    ctx.module_context.add_keepalive(call)
    return jax.ffi.ffi_lowering(_NAME)(ctx, *operands, function=np.int64(call.number))


@functools.cache
def _register(platform):
    """Not before it is needed: no program runs where XLA refuses it."""
    handler = ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))(functools.partial(_handle, platform != "cpu"))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))  # XLA may call it until the process ends
    address = ctypes.cast(handler, c_void_p).value
    jax.ffi.register_ffi_target(_NAME, jax.ffi.pycapsule(address), platform=platform, api_version=1)


def _handle(is_on_gpu, pointer):
    frame = pointer.contents
    if frame.extension and frame.extension.contents.type == _IS_METADATA:
        _answer(frame)
        return None
    try:
        if frame.stage == _EXECUTES:
            _run(frame, is_on_gpu)
    except BaseException as error:  # XLA raises it
        text = f"{type(error).__name__}: {error}".encode()
        return frame.api.contents.create_error(_new(_ErrorArguments, message=text, code=_INTERNAL))
    return None


def _answer(frame):
    """Tells XLA its own version, 0.1 where it does not say, if the layouts are known; it refuses 0.0."""
    metadata = ctypes.cast(frame.extension, POINTER(_MetadataExtension)).contents.metadata.contents
    own = frame.api.contents.version if frame.api else _new(_Version, major=0, minor=1)
    is_known = own.struct_size == ctypes.sizeof(_Version) and own.major == 0
    metadata.version.major, metadata.version.minor = 0, own.minor if is_known else 0
    metadata.traits = 0


def _run(frame, is_on_gpu):
    for fields in frame.operands, frame.results, frame.attributes:
        if fields.struct_size != ctypes.sizeof(fields):
            raise RuntimeError("This version of XLA passes arrays in another way than farfield knows.")
    call = _functions.get(_number_of(frame.attributes))
    if call is None:
        raise RuntimeError("This program was compiled in another process, or its solver is gone: compile it anew.")
    operands, results = (
        [items.items[k].contents for k in range(items.size)] for items in (frame.operands, frame.results)
    )
    if is_on_gpu:
        _run_on_gpu(call.function, operands, results, _stream_of(frame))
    else:
        call.function(HOST, [*map(_on_host, operands)], [*map(_on_host, results)])


def _run_on_gpu(function, operands, results, stream):
    addresses = [buffer.data for buffer in (*operands, *results) if buffer.data]
    device = _core.gpu_of(addresses[0]) if addresses else function.device
    given, filled = ([_there(buffer, device, stream) for buffer in part] for part in (operands, results))
    if function.device == device:
        function(on_stream(stream), given, filled)
        return
    there = [np.empty(array.shape, array.dtype) for array in filled]
    function(HOST, [array.get() for array in given], there)
    for array, numbers in zip(filled, there):
        array.set(numbers)


def _there(buffer, device, stream):
    shape, dtype = _form_of(buffer)
    return GpuArray(shape, dtype, device, buffer.data or 0, stream)


def _on_host(buffer):
    shape, dtype = _form_of(buffer)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not size:
        return np.empty(shape, dtype)
    return np.frombuffer((ctypes.c_char * size).from_address(buffer.data), dtype).reshape(shape)


def _form_of(buffer):
    return tuple(buffer.dims[: buffer.rank]), _TYPES[buffer.dtype]


def _number_of(attributes):
    """The only attribute."""
    if attributes.size != 1 or attributes.types[0] != _IS_SCALAR:
        raise RuntimeError("XLA has other attributes of a call than farfield has given it.")
    return attributes.values[0].contents.value[0]


def _stream_of(frame):
    api = frame.api.contents
    arguments = _new(_StreamArguments, context=frame.context)
    error = api.get_stream(arguments)
    if not error:
        return arguments.stream or 0
    message = _new(_MessageArguments, error=error)
    api.message_of_error(message)
    text = message.message.decode()
    api.destroy_error(_new(_DestroyArguments, error=error))
    raise RuntimeError(text)
