"""Answers as other GPU libraries have them: cuDF's frames, and arrays for CuPy and torch.

Nothing is copied through the host.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import view_as
from bamquery.engine.cuda.session import CudaSession
from bamquery.errors import BamQueryError

_DURATIONS: Final = {"us": TypeId.DURATION_MICROSECONDS, "ns": TypeId.DURATION_NANOSECONDS}


def to_cudf(
    session: CudaSession, frame: CudaFrame, names: Sequence[str], kinds: Sequence[pa.DataType]
) -> Any:
    """A `cudf.DataFrame` over the frame's columns, which it keeps.

    Dates become timestamps of seconds, times of day durations since midnight; zones, digits of decimals and
    dictionaries (as categories) are as in the types.

    Raises:
        BamQueryError: cuDF is not installed, or has no such type.
    """
    cudf = _library("cudf", "to_cudf()")
    if not frame.columns:
        return cudf.DataFrame(index=cudf.RangeIndex(frame.rows))
    session.enter()
    session.synchronize()  # cuDF works on another stream
    columns = [_cudf_column(column, kind) for column, kind in zip(frame.columns, kinds, strict=True)]
    found = cudf.DataFrame.from_pylibcudf(plc.Table(columns), metadata={"columns": list(names)})
    for name, kind in zip(names, kinds, strict=True):
        found = _cast_result(cudf, found, name, kind)
    return found


def _cudf_column(column: plc.Column, kind: Any) -> plc.Column:
    plain: Any = value_type(kind)
    if pa.types.is_large_binary(plain):
        raise BamQueryError("cuDF has no columns of type BLOB: leave them out, or take to_arrow()")
    if pa.types.is_time64(plain):
        return view_as(column, plc.DataType(_DURATIONS[plain.unit]))
    return column


def _cast_result(cudf: Any, frame: Any, name: str, kind: Any) -> Any:
    """The frame, its column of the type that libcudf does not keep."""
    plain: Any = value_type(kind)
    if pa.types.is_timestamp(plain) and plain.tz is not None:
        instants = frame[name].dt.tz_localize("UTC")
        frame[name] = instants if plain.tz == "UTC" else instants.dt.tz_convert(plain.tz)
    elif pa.types.is_decimal128(plain) and plain.precision < 38:
        frame[name] = frame[name].astype(cudf.Decimal128Dtype(plain.precision, plain.scale))
    if pa.types.is_dictionary(kind):
        frame[name] = frame[name].astype("category")
    return frame


class DeviceArray:
    """One column without nulls in a GPU's memory, as CUDA's Python libraries exchange arrays.

    `cupy.asarray` and `torch.as_tensor` take it without a copy, and keep it; so does what takes DLPack.
    """

    def __init__(self, column: plc.Column, dtype: Any) -> None:
        """Take a fixed-width column whose values are numpy's of `dtype`."""
        data = column.data()
        self._owner: Final = data
        self._shape: Final = (column.size(),)
        self._type: Final = dtype.str
        self._address: Final = 0 if data is None else data.ptr + column.offset() * dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self._shape,
            "typestr": self._type,
            "data": (self._address if self._shape[0] else 0, False),
            "strides": None,
            "version": 3,
        }

    def __dlpack__(self, **options: Any) -> Any:
        return _library("cupy", "DLPack").asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return _library("cupy", "DLPack").asarray(self).__dlpack_device__()


def to_arrays(
    session: CudaSession, frame: CudaFrame, names: Sequence[str], kinds: Sequence[pa.DataType]
) -> dict[str, DeviceArray]:
    """The columns by name. Dates are days, timestamps and times units of their type, since their beginnings.

    Raises:
        BamQueryError: a column has nulls, or is none of numbers, booleans, dates and times.
    """
    session.enter()
    session.synchronize()  # others work on other streams
    triples = zip(names, frame.columns, kinds, strict=True)
    return {name: _array(name, column, kind) for name, column, kind in triples}


def _array(name: str, column: plc.Column, kind: pa.DataType) -> DeviceArray:
    plain = value_type(kind)
    if column.null_count():
        raise BamQueryError(
            f'column "{name}" has nulls, which arrays have not: coalesce it, or filter with IS NOT NULL'
        )
    if pa.types.is_temporal(plain):
        plain = pa.int32() if pa.types.is_date32(plain) else pa.int64()
    if not (pa.types.is_integer(plain) or pa.types.is_floating(plain) or pa.types.is_boolean(plain)):
        raise BamQueryError(
            f'column "{name}" of type {type_name(kind)} is no array: cast it, leave it out, or take to_cudf()'
        )
    return DeviceArray(column, np.dtype(plain.to_pandas_dtype()))


def _library(name: str, purpose: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BamQueryError(
            f"{purpose} needs {name}, which cannot be imported ({error}): pip install 'bamquery[cu13]'"
        ) from error
