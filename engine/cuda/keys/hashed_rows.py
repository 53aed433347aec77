"""Rows told apart by their keys, by kernels of engine/kernels/keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.engine.cuda.cache.late_columns import Held
from bamquery.engine.cuda.frames import column_from_buffers
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.key_columns import MOST_KEYS, pack_column, pack_columns
from bamquery.engine.cuda.launcher import WARPS

_EMPTY_BYTE: Final = 0xFF
_FEW: Final = 1 << 20
"""Places of a table that is tried first: groups are few, mostly, and such a table stays in the cache."""
_MOST_PLACES: Final = 1 << 32
_MANY_ROWS: Final = 1 << 20
"""From which on it is looked whether rows come in the order of their key, as tables are often stored."""
_COUNTED: Final = frozenset({TypeId.INT32, TypeId.INT64, TypeId.TIMESTAMP_DAYS})
"""Keys whose order is that of their words."""
_FILE: Final = "keys/group_rows"
_VECTOR: Final = 1024
_INT32: Final = pa.int32()


@dataclass(frozen=True)
class HashedGroups:
    """Rows in groups, numbered in the order in which they first appear.

    Attributes:
        codes: int32, each row's group.
        firsts: int32, each group's first row.
        groups: how many.
    """

    codes: plc.Column
    firsts: plc.Column
    groups: int


def _number_runs(kernels: Kernels, key: plc.Column, rows: int) -> HashedGroups | None:
    """Groups of rows that come ordered by a number; None where they do not."""
    session = kernels.session
    launcher, stream = session.launcher, session.driver_stream
    vectors = -(-rows // _VECTOR)
    bits = session.allocate(4 * 32 * vectors, "GROUP BY")
    before = session.allocate(4 * 32 * vectors, "GROUP BY")
    counts = session.allocate(4 * vectors, "GROUP BY")
    offsets = session.allocate(4 * (vectors + 1), "GROUP BY")
    status = session.read_back.take(2)
    launcher.start(
        launcher.kernel(_FILE, "keys_runs"),
        *(pack_column(key), rows, status.address, bits.ptr, before.ptr, counts.ptr),
        grid=launcher.grid(vectors, WARPS),
        stream=stream,
    )
    launcher.prefix_sums(counts.ptr, vectors, offsets.ptr, status.address + 4, stream)
    unordered, groups = session.read_back.read(status)
    if unordered:
        return None
    codes = session.allocate(4 * rows, "GROUP BY")
    firsts = session.allocate(4 * groups, "GROUP BY")
    launcher.start(
        launcher.kernel(_FILE, "keys_number_runs"),
        *(rows, bits.ptr, before.ptr, offsets.ptr, codes.ptr, firsts.ptr),
        grid=launcher.grid(rows),
        stream=stream,
    )
    return HashedGroups(
        column_from_buffers(_INT32, rows, codes), column_from_buffers(_INT32, groups, firsts), groups
    )


def takes_keys(keys: Sequence[Held]) -> bool:
    """Whether kernels compare so many columns; all types that keys have are such as they compare."""
    return len(keys) <= MOST_KEYS


def hash_groups(kernels: Kernels, keys: Sequence[plc.Column], rows: int) -> HashedGroups:
    """Groups of at least one row by at least one key. Floats have one NaN and one zero.

    Raises:
        MemoryLimitError: the table needs more than there is.
    """
    session = kernels.session
    launcher, stream = session.launcher, session.driver_stream
    if rows >= _MANY_ROWS and len(keys) == 1 and keys[0].type().id() in _COUNTED:
        runs = None if keys[0].null_count() else _number_runs(kernels, keys[0], rows)
        if runs is not None:
            return runs
    packed = pack_columns(keys)
    places = session.allocate(4 * rows, "GROUP BY")
    vectors = -(-rows // _VECTOR)
    bits = session.allocate(4 * 32 * vectors, "GROUP BY")
    before = session.allocate(4 * 32 * vectors, "GROUP BY")
    counts = session.allocate(4 * vectors, "GROUP BY")
    offsets = session.allocate(4 * (vectors + 1), "GROUP BY")
    codes = session.allocate(4 * rows, "GROUP BY")
    most = min(1 << (2 * rows - 1).bit_length(), _MOST_PLACES)
    grid = launcher.grid(rows)
    for size in [most] if most <= 4 * _FEW else [_FEW, most]:
        table = session.allocate(4 * size, "GROUP BY")
        session.gpu.cuda("clear a table", "cuMemsetD8Async", table.ptr, _EMPTY_BYTE, 4 * size, stream)
        status = session.read_back.take(3)
        taken, full, total = (status.address + 4 * i for i in range(3))
        # The largest table has room for all rows.
        enough = rows if size == most else size // 2
        launcher.start(
            launcher.kernel(_FILE, "keys_enter"),
            *(packed, rows, table.ptr, size - 1, enough, taken, full, places.ptr),
            grid=grid,
            stream=stream,
        )
        launcher.start(
            launcher.kernel(_FILE, "keys_first"),
            *(table.ptr, places.ptr, rows, full, bits.ptr, before.ptr, counts.ptr),
            grid=launcher.grid(vectors, WARPS),
            stream=stream,
        )
        launcher.prefix_sums(counts.ptr, vectors, offsets.ptr, total, stream)
        _, is_full, groups = session.read_back.read(status)
        if not is_full:
            break
    firsts = session.allocate(4 * groups, "GROUP BY")
    launcher.start(
        launcher.kernel(_FILE, "keys_number"),
        *(table.ptr, places.ptr, rows, bits.ptr, before.ptr, offsets.ptr, codes.ptr, firsts.ptr),
        grid=grid,
        stream=stream,
    )
    return HashedGroups(
        column_from_buffers(_INT32, rows, codes), column_from_buffers(_INT32, groups, firsts), groups
    )
