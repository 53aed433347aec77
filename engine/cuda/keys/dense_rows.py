"""Rows told apart by keys that are places in small dictionaries: combinations are counted, not hashed."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.cache.late_columns import LateColumn
from bamquery.engine.cuda.frames import column_from_buffers
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.hashed_rows import HashedGroups, hash_groups
from bamquery.engine.cuda.transfer.upload import upload

MANY_ROWS: Final = 1 << 16
"""From which on it is worth its wait."""
_MOST_COMBINATIONS: Final = 1 << 12
_MOST_KEYS: Final = 4
_KEY: Final = struct.Struct("<QQQII")
"""A DenseKey (engine/kernels/keys/dense_rows.cu)."""
_FILE: Final = "keys/dense_rows"
_INT32: Final = pa.int32()


def number_combinations(kernels: Kernels, keys: Sequence[LateColumn], rows: int) -> HashedGroups | None:
    """Groups of at least one row by keys that all have dictionaries; None where combinations are many.

    Raises:
        MemoryLimitError: there is too little memory.
    """
    if not 0 < len(keys) <= _MOST_KEYS:
        return None
    sizes = [_size(kernels, key) for key in keys]
    combinations = math.prod(size + 1 for size in sizes)
    if combinations > _MOST_COMBINATIONS:
        return None
    session = kernels.session
    launcher, stream, grid = session.launcher, session.driver_stream, session.launcher.grid(rows)
    codes = session.allocate(4 * rows, "GROUP BY")
    firsts = session.read_back.take(combinations)
    launcher.start(
        launcher.kernel(_FILE, "keys_combine"),
        *(_pack(keys, sizes), rows, codes.ptr, firsts.address),
        grid=grid,
        stream=stream,
    )
    found = np.array(session.read_back.read(firsts), np.uint32)
    present = np.flatnonzero(found)
    first_rows = ~found[present]
    order = np.argsort(first_rows)
    numbers = np.zeros(combinations, np.int32)
    numbers[present[order]] = np.arange(len(order))
    of_combinations = upload(session, pa.array(numbers))
    first_of_groups = upload(session, pa.array(first_rows[order].astype(np.int32)))
    launcher.start(
        launcher.kernel(_FILE, "keys_number_combinations"),
        *(rows, _address(of_combinations), codes.ptr),
        grid=grid,
        stream=stream,
    )
    session.synchronize()  # before the arrays are let go of
    return HashedGroups(column_from_buffers(_INT32, rows, codes), first_of_groups, len(order))


def _size(kernels: Kernels, key: LateColumn) -> int:
    """How many different values its dictionary has."""
    dictionary = key.dictionary
    assert dictionary is not None

    def number(values: plc.Column) -> tuple[plc.Column, int]:
        found = hash_groups(kernels, [values], values.size())
        return found.codes, found.groups

    return dictionary.count_distinct(number)


def _pack(keys: Sequence[LateColumn], sizes: Sequence[int]) -> bytes:
    packed = b""
    for key, size in zip(keys, sizes, strict=True):
        dictionary = key.dictionary
        assert dictionary is not None
        numbers = dictionary.numbers
        # Places that nobody else has looked for need not be copied for this.
        places, rows = key.places.chosen or (key.places.column, None)
        packed += _KEY.pack(
            *(_address(places), 0 if rows is None else _address(rows)),
            *(0 if numbers is None else _address(numbers), dictionary.size, size),
        )
    return packed + bytes(_KEY.size * (_MOST_KEYS - len(keys))) + struct.pack("<Q", len(keys))


def _address(column: plc.Column) -> int:
    data = column.data()
    assert data is not None
    return int(data.ptr) + 4 * column.offset()
