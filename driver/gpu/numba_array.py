"""`array[i]` inside `@numba.cuda.jit`: what numba-cuda must know of a GpuArray.

Compiled kernels have the address of a view in the GPU's memory and call the functions of
kernels/array_functions.cu, which numba-cuda compiles and links. Importing this module needs numba-cuda.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda
from numba.cuda import extending, types

from bamquery.driver.compile.compiler import expand_includes
from bamquery.driver.compile.toolchain import KERNELS
from bamquery.driver.numba_bits import bit_casts


class GpuArrayType(types.EnumMember):
    """The type of a GpuArray of one dtype.

    Launching passes an enum's member as its `value`: that is how the address of an array's view comes into a
    kernel without an extension named in every `@cuda.jit`.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        super().__init__(GpuArrayType, types.uint64)
        self.name = f"bamquery.GpuArray({dtype})"
        self.element = getattr(types, dtype.name)
        self.element_bytes = dtype.itemsize

    @property
    def key(self) -> str:
        """Types of one dtype are one."""
        return str(self.name)


@extending.register_model(GpuArrayType)
class _GpuArrayModel(extending.core_models.ProxyModel):
    """In a kernel an array is its view's address."""

    def __init__(self, manager: Any, array: GpuArrayType) -> None:
        super().__init__(manager, array)
        self._proxied_model = manager.lookup(array.dtype)


@functools.cache
def gpu_array_type(dtype: np.dtype[Any]) -> GpuArrayType:
    """What numba-cuda calls a GpuArray of `dtype`."""
    return GpuArrayType(dtype)


@functools.cache
def _source() -> Any:
    """The device functions, with what they include: numba-cuda does not know our folders."""
    return cuda.CUSource(expand_includes(KERNELS / "array_functions.cu"))


@functools.cache
def _functions(element_bytes: int) -> tuple[Any, Any]:
    place = (types.uint64, types.int64)
    name = "bamquery_array_{}_" + str(element_bytes)
    return (
        cuda.declare_device(name.format("read"), types.uint64(*place), link=_source(), abi="c"),
        cuda.declare_device(
            name.format("write"), types.uint64(*place, types.uint64), link=_source(), abi="c"
        ),
    )


@functools.cache
def _size_function() -> Any:
    signature = types.int64(types.uint64)
    return cuda.declare_device("bamquery_array_size", signature, link=_source(), abi="c")


_as_bits, _from_bits = bit_casts(extending, types)


@extending.overload(len, target="cuda")
def _len(array: Any) -> Callable[..., Any] | None:
    if not isinstance(array, GpuArrayType):
        return None
    count = _size_function()

    def size(array: Any) -> Any:
        return count(array.value)

    return size


@extending.overload(operator.getitem, target="cuda")
def _getitem(array: Any, index: Any) -> Callable[..., Any] | None:
    if not isinstance(array, GpuArrayType) or not isinstance(index, types.Integer):
        return None
    read, _ = _functions(array.element_bytes)
    dtype = array.element

    def get(array: Any, index: Any) -> Any:
        return _from_bits(read(array.value, index), dtype)

    return get


@extending.overload(operator.setitem, target="cuda")
def _setitem(array: Any, index: Any, value: Any) -> Callable[..., Any] | None:
    if not isinstance(array, GpuArrayType) or not isinstance(index, types.Integer):
        return None
    _, write = _functions(array.element_bytes)
    dtype = array.element

    def put(array: Any, index: Any, value: Any) -> None:
        write(array.value, index, _as_bits(dtype(value)))

    return put
