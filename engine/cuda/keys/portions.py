"""Rows that are about to be copied, in portions of a bounded size: strings of one row may come many times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.engine.cuda.cache.late_columns import Held, LateColumn
from bamquery.engine.cuda.frames import column_bytes, make_frame
from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.cuda.libcudf_types import is_narrow
from bamquery.engine.cuda.transfer import record_batches as transfer
from bamquery.engine.cuda.vectors import Vector
from bamquery.plan.nodes import Field

_MOST: Final = 1 << 30
"""Bytes of a portion: long enough to copy that starting costs nothing."""
_LEAST: Final = 4 << 20
_SHARE: Final = 16
"""Part of `gpu_memory_limit` that a portion takes: it is copied, joined and grouped while it is there."""
_OFFSET: Final = 8
_WIDER: Final = 8
"""Bytes by which copies of narrow decimals are wider."""
_ENDS: Final = (Field("end", pa.int64()),)


def portion_bytes(kernels: Kernels) -> int:
    """Bytes of rows to be made at once."""
    limit = kernels.session.limit
    return _MOST if limit is None else min(max(limit // _SHARE, _LEAST), _MOST)


def row_width(columns: Sequence[Held]) -> int:
    """Bytes of a copy of any row without its strings; offsets are of 8 bytes where strings are many.

    Late columns count as if they were copied, since somebody may look at them; of their strings the mean, and
    decimals as wide as the copy is.
    """
    return sum(map(_width, columns))


def _width(column: Held) -> int:
    if isinstance(column, LateColumn):
        source = column.source
        own = -(-column_bytes(source) // max(source.size(), 1))
        return own + _WIDER if is_narrow(source.type()) else own
    return _OFFSET if is_string(column) else -(-column_bytes(column) // max(column.size(), 1))


def string_bytes(columns: Sequence[Held]) -> int:
    """Bytes of the strings of all rows together at most; of a slice those of what it is a slice of."""
    strings = [one for one in columns if not isinstance(one, LateColumn) and is_string(one)]
    data = [column.data() for column in strings]
    return sum(0 if one is None else one.size for one in data)


def string_lengths(kernels: Kernels, columns: Sequence[Held]) -> Vector | None:
    """Each row's bytes of strings and binaries together; None: there are no such columns, or no rows."""
    found: Vector | None = None
    for column in columns:
        if not isinstance(column, LateColumn) and is_string(column) and column.size():
            sizes = plc.strings.attributes.count_bytes(column, stream=kernels.stream, mr=kernels.memory)
            own = Vector(kernels, kernels.convert(sizes, INT64)).fill_nulls(0)
            found = own if found is None else found + own
    return found


def lengths_at(kernels: Kernels, lengths: Vector, places: plc.Column) -> Vector:
    """Those of rows at places, 0 beyond the last row."""
    return Vector(kernels, kernels.gather([lengths.column], places, nullify=True)[0]).fill_nulls(0)


def is_string(column: Held) -> bool:
    """Whether copies of its rows have lengths of their own."""
    return not isinstance(column, LateColumn) and bool(column.type().id() == TypeId.STRING)


def longest(kernels: Kernels, lengths: Vector | None) -> int:
    """The greatest; the host waits."""
    if lengths is None:
        return 0
    found = kernels.reduce(lengths.column, plc.aggregation.max(), INT64).to_py(stream=kernels.stream)
    return int(found or 0)


def even_ends(rows: int, width: int, most: int) -> list[int]:
    """Where portions of rows of equal widths end."""
    step = max(most // max(width, 1), 1)
    return [*range(step, rows, step), rows]


def fitting_ends(kernels: Kernels, sizes: Vector, most: int) -> list[int]:
    """Where portions of rows of so many bytes each end; the host waits.

    Each but the last begins a multiple of `most` bytes from the start or later, so it has no more than
    `most` bytes and one row.
    """
    rows = len(sizes)
    if rows < 2:
        return [rows]
    totals = sizes.totals()
    if totals.item(rows) <= most:
        return [rows]
    portion = totals.slice(0, rows) / most
    begins = (portion.slice(1, rows).differs(portion.slice(0, rows - 1)).places() + 1).column
    batch = transfer.to_arrow(kernels.session, make_frame([begins], begins.size()), _ENDS)
    ends: Any = np.asarray(batch.column(0))
    return [*ends.tolist(), rows]
