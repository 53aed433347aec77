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

from bamquery.engine.cuda.device_memory import reported
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.cuda.transfer.upload import upload


@dataclass(frozen=True)
class _Words:
    """Device memory that somebody else keeps, as libcudf's columns take it."""

    ptr: int
    size: int


def uploaded(session: CudaSession, values: pa.Array[Any]) -> plc.Column:
    """A column of values; the array must live until the session's stream has copied it."""
    with reported("a dictionary", session.limit, values.nbytes):
        return upload(session, values)


def joined(session: CudaSession, columns: Sequence[plc.Column]) -> plc.Column:
    """The columns' values, end to end."""
    if len(columns) == 1:
        return columns[0]
    with reported("dictionaries", session.limit):
        return plc.concatenate.concatenate(list(columns), stream=session.stream, mr=session.memory)


def looked_up(session: CudaSession, values: plc.Column, places: rmm.DeviceBuffer, rows: int) -> plc.Column:
    """The value at each of `rows` places, 32 bits each; null where that is beyond the values."""
    return _gathered(session, values, places.ptr, rows, OutOfBoundsPolicy.NULLIFY)


def rows_at(session: CudaSession, column: plc.Column, places: int, rows: int) -> plc.Column:
    """The column's rows at `rows` places, 32 bits each, which are on the GPU at that address."""
    return _gathered(session, column, places, rows, OutOfBoundsPolicy.DONT_CHECK)


def nothing(session: CudaSession, kind: pa.DataType, rows: int) -> plc.Column:
    """`rows` nulls."""
    plain: Any = kind
    nulls: Any = pa.nulls(rows, plain)
    found = upload(session, nulls)
    session.synchronize()  # before the array is let go of
    return found


def _gathered(
    session: CudaSession, column: plc.Column, places: int, rows: int, policy: OutOfBoundsPolicy
) -> plc.Column:
    where = plc.Column(plc.DataType(TypeId.INT32), rows, _Words(places, 4 * rows), None, 0, 0, [])
    with reported("chosen rows", session.limit):
        table = plc.copying.gather(
            plc.Table([column]), where, policy, stream=session.stream, mr=session.memory
        )
    return table.columns()[0]
