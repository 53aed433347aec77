"""`array[i]` inside `@numba.njit`: what numba must know of an Array.

Compiled code has the address of the native array and calls C functions of the extension module, by address.
Importing this module needs numba; Array does so when numba first asks for its type.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

import numba
import numpy as np
from numba import extending, types
from numba.core import cgutils

from bamquery import _native
from bamquery.driver.numba_bits import bit_casts
from bamquery.errors import NvmeError

_OUT_OF_BOUNDS: Final = 0x7C5


class ArrayType(types.Type):
    """The type of an Array of one dtype."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        super().__init__(f"bamquery.Array({dtype})")
        self.dtype = numba.from_dtype(dtype)
        self.element_bytes = dtype.itemsize


@functools.cache
def array_type(dtype: np.dtype[Any]) -> ArrayType:
    """What numba calls an Array of `dtype`."""
    return ArrayType(dtype)


@extending.register_model(ArrayType)
class _ArrayModel(extending.models.StructModel):
    def __init__(self, manager: Any, array: ArrayType) -> None:
        super().__init__(manager, array, [("address", types.uint64), ("size", types.int64)])


extending.make_attribute_wrapper(ArrayType, "address", "address")
extending.make_attribute_wrapper(ArrayType, "size", "size")


@extending.unbox(ArrayType)
def _unbox_array(array: ArrayType, value: Any, context: Any) -> Any:
    builder, api = context.builder, context.pyapi
    native = cgutils.create_struct_proxy(array)(context.context, builder)
    failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
    with ExitStack() as stack:
        found = api.object_getattr_string(value, "address")
        with cgutils.early_exit_if_null(builder, stack, found):
            pass
        native.address = context.unbox(types.uint64, found).value
        api.decref(found)
        method = api.object_getattr_string(value, "__len__")
        with cgutils.early_exit_if_null(builder, stack, method):
            pass
        size = api.call_function_objargs(method, ())
        api.decref(method)
        with cgutils.early_exit_if_null(builder, stack, size):
            pass
        native.size = context.unbox(types.int64, size).value
        api.decref(size)
        builder.store(cgutils.false_bit, failed)
    return extending.NativeValue(native._getvalue(), is_error=builder.load(failed))


@functools.cache
def _functions(element_bytes: int) -> tuple[Any, Any, Any, Any, Any, Any]:
    read, write, failed, nsid, lba, drive = _native.array_functions(element_bytes)
    place = (ctypes.c_uint64, ctypes.c_int64)
    return (
        ctypes.CFUNCTYPE(ctypes.c_uint64, *place)(read),
        ctypes.CFUNCTYPE(None, *place, ctypes.c_uint64)(write),
        ctypes.CFUNCTYPE(ctypes.c_uint32)(failed),
        ctypes.CFUNCTYPE(ctypes.c_uint32)(nsid),
        ctypes.CFUNCTYPE(ctypes.c_uint64)(lba),
        ctypes.CFUNCTYPE(ctypes.c_int32)(drive),
    )


_as_bits, _from_bits = bit_casts(extending, types)


@extending.overload(len)
def _len(array: Any) -> Callable[..., Any] | None:
    if not isinstance(array, ArrayType):
        return None

    def size(array: Any) -> Any:
        return array.size

    return size


@extending.overload(operator.getitem)
def _getitem(array: Any, index: Any) -> Callable[..., Any] | None:
    if not isinstance(array, ArrayType) or not isinstance(index, types.Integer):
        return None
    read, _, failed, nsid, lba, drive = _functions(array.element_bytes)
    dtype = array.dtype

    def get(array: Any, index: Any) -> Any:
        word = read(array.address, index)
        status = failed()
        if status == _OUT_OF_BOUNDS:
            raise IndexError("the array has no such element")
        if status != 0:
            raise NvmeError("read failed", nsid(), lba(), status >> 8, status & 255, drive())
        return _from_bits(word, dtype)

    return get


@extending.overload(operator.setitem)
def _setitem(array: Any, index: Any, value: Any) -> Callable[..., Any] | None:
    if not isinstance(array, ArrayType) or not isinstance(index, types.Integer):
        return None
    _, write, failed, nsid, lba, drive = _functions(array.element_bytes)
    dtype = array.dtype

    def put(array: Any, index: Any, value: Any) -> None:
        write(array.address, index, _as_bits(dtype(value)))
        status = failed()
        if status == _OUT_OF_BOUNDS:
            raise IndexError("the array has no such element")
        if status != 0:
            raise NvmeError("write failed", nsid(), lba(), status >> 8, status & 255, drive())

    return put
