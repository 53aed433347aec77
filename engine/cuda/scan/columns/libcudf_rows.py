"""What scans leave to libcudf: rows of columns that are no plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pylibcudf as plc
import rmm
from pylibcudf.copying import OutOfBoundsPolicy
from pylibcudf.types import TypeId

from bamquery.engine.cuda.cache.late_columns import Dictionary, Held, LateColumn, RowPlaces, all_rows
from bamquery.engine.cuda.device_memory import memory_errors
from bamquery.engine.cuda.frames import column_from_buffers
from bamquery.engine.cuda.kernels import kernels_of
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.cuda.transfer.upload import upload


@dataclass(frozen=True)
class _Words:
    """Device memory that somebody else keeps, as libcudf's columns take it."""

    ptr: int
    size: int


def upload_values(session: CudaSession, values: pa.Array[Any]) -> plc.Column:
    """A column of values; the array must live until the session's stream has copied it."""
    with memory_errors("a dictionary", session.limit, values.nbytes):
        return upload(session, values)


def concatenate(session: CudaSession, columns: Sequence[plc.Column]) -> plc.Column:
    """The columns' values, end to end."""
    if len(columns) == 1:
        return columns[0]
    with memory_errors("dictionaries", session.limit):
        return plc.concatenate.concatenate(list(columns), stream=session.stream, mr=session.memory)


def look_up(session: CudaSession, values: plc.Column, places: rmm.DeviceBuffer, rows: int) -> plc.Column:
    """The value at each of `rows` places, 32 bits each; null where that is beyond the values."""
    return _gather(session, values, places.ptr, rows, OutOfBoundsPolicy.NULLIFY)


def late_rows(
    session: CudaSession, dictionary: Dictionary, places: rmm.DeviceBuffer, rows: int, *, nulls: bool
) -> Held:
    """As `look_up`, once somebody asks for the values. `nulls`: whether some place is right behind them."""
    found = column_from_buffers(pa.int32(), rows, places)
    listed = RowPlaces.listed(found, nulls=nulls, at_end=True)
    return LateColumn(kernels_of(session), dictionary.values, listed, dictionary)


def narrow_rows(session: CudaSession, column: Held) -> Held:
    """A column of 64-bit decimals as rows of it, which are made wide once somebody asks for them."""
    assert not isinstance(column, LateColumn)
    return all_rows(kernels_of(session), column)


def take_rows(session: CudaSession, column: plc.Column, places: int, rows: int) -> plc.Column:
    """The column's rows at `rows` places, 32 bits each, which are on the GPU at that address."""
    return _gather(session, column, places, rows, OutOfBoundsPolicy.DONT_CHECK)


def null_column(session: CudaSession, kind: pa.DataType, rows: int) -> plc.Column:
    """`rows` nulls."""
    plain: Any = kind
    nulls: Any = pa.nulls(rows, plain)
    found = upload(session, nulls)
    session.synchronize()  # before the array is let go of
    return found


def _gather(
    session: CudaSession, column: plc.Column, places: int, rows: int, policy: OutOfBoundsPolicy
) -> plc.Column:
    where = plc.Column(plc.DataType(TypeId.INT32), rows, _Words(places, 4 * rows), None, 0, 0, [])
    with memory_errors("chosen rows", session.limit):
        table = plc.copying.gather(
            plc.Table([column]), where, policy, stream=session.stream, mr=session.memory
        )
    return table.columns()[0]
