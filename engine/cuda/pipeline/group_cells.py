"""Cells of groups in a GPU's memory: words that programs gather, merged, and made into values."""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pylibcudf as plc
import rmm

from bamquery.engine.cuda.frames import column_from_buffers
from bamquery.engine.cuda.kernels import INT64
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.pipeline.cell_layout import CellLayout, pack_words
from bamquery.engine.cuda.session import CudaSession
from bamquery.errors import GpuError

_WORD: Final = 8
_BITMAP_BYTES: Final = 64
_FILE: Final = "pipeline/group_cells"


class Finish(enum.IntEnum):
    """How a value is had from words; the numbers are those of `group_cells.cu`."""

    WORD = 0
    DECIMAL = 1
    MEAN = 2
    DOUBLE = 3
    MEAN_OF_DOUBLES = 4
    ORDERED_DOUBLE = 5


def start_compiling_cells(session: CudaSession) -> None:
    """Begin with the kernels of this module."""
    with suppress(GpuError):  # said where they are wanted
        session.launcher.start_compiling(_FILE)


@dataclass(frozen=True)
class _Part:
    """Some bytes of a buffer, which it keeps, as libcudf's columns take memory."""

    ptr: int
    size: int
    owner: rmm.DeviceBuffer


class GroupCells:
    """Words of groups, those of one word beside each other.

    Attributes:
        layout: what the words are.
        groups: at least one.
    """

    def __init__(self, layout: CellLayout, groups: int, memory: rmm.DeviceBuffer) -> None:
        self.layout = layout
        self.groups = groups
        self._memory = memory

    @staticmethod
    def cleared(session: CudaSession, layout: CellLayout, groups: int) -> GroupCells:
        """Cells to which nothing was added.

        Raises:
            MemoryLimitError: they need more than there is.
        """
        memory = session.allocate(_WORD * groups * len(layout.kinds), "the states of groups")
        cells = GroupCells(layout, groups, memory)
        launcher = session.launcher
        launcher.start(
            launcher.kernel(_FILE, "cells_clear"),
            *(cells.packed(), pack_words(layout.kinds, ()), groups),
            grid=launcher.grid(groups),
            stream=session.driver_stream,
        )
        return cells

    def packed(self) -> bytes:
        """A `Cells` of cells.hpp."""
        return struct.pack("<Qqq", self._memory.ptr, self.groups, 1)

    def columns(self, layout: CellLayout) -> list[plc.Column]:
        """Words of another layout of the same aggregates, which counts more often apart; not copied."""
        words = {0: 0}
        for one, other in zip(layout.places, self.layout.places, strict=True):
            words[one.count] = other.count
            words |= {one.value + i: other.value + i for i in range(one.width)}
        size = _WORD * self.groups
        parts = [
            _Part(self._memory.ptr + words[word] * size, size, self._memory)
            for word in range(len(layout.kinds))
        ]
        return [plc.Column(INT64, self.groups, part, None, 0, 0, []) for part in parts]


def merge_cells(
    session: CudaSession,
    layout: CellLayout,
    states: Sequence[Sequence[plc.Column]],
    codes: plc.Column | None,
    groups: int,
) -> list[plc.Column]:
    """One state of several, which have the words of the layout; `codes` has the groups of all their rows.

    `codes` is int32 without nulls; None: all are group 0.
    """
    cells = GroupCells.cleared(session, layout, groups)
    launcher, begin = session.launcher, 0
    for words in states:
        count = words[0].size()
        if not count:
            continue
        where = 0 if codes is None else _address(codes, 4) + 4 * begin
        given = pack_words(layout.kinds, [_address(word, _WORD) for word in words])
        launcher.start(
            launcher.kernel(_FILE, "cells_merge"),
            *(given, where, count, cells.packed()),
            grid=launcher.grid(count),
            stream=session.driver_stream,
        )
        begin += count
    return cells.columns(layout)


@dataclass(frozen=True)
class FinishedColumn:
    """Values of an aggregate whose nulls the GPU is counting."""

    kind: pa.DataType
    rows: int
    values: rmm.DeviceBuffer
    validity: rmm.DeviceBuffer | None

    def column(self, nulls: int) -> plc.Column:
        """The values, of which so many are null."""
        return column_from_buffers(
            self.kind, self.rows, self.values, validity=self.validity, null_count=nulls
        )


@dataclass(frozen=True, slots=True)
class Finishing:
    """How an aggregate's values are had.

    Attributes:
        value: the number of its first word.
        count: of the word with the rows that counted; None: no value is null.
        finish: the way.
        unit: for means of whole numbers what 1 is of them.
        kind: the values' type.
    """

    value: int
    count: int | None
    finish: Finish
    unit: float
    kind: pa.DataType


def finish_cells(
    session: CudaSession, words: Sequence[plc.Column], work: Finishing, nulls: int
) -> FinishedColumn:
    """Start to make an aggregate's values, for at least one group; nulls are counted at an address."""
    groups = words[0].size()
    width = plc.types.size_of(device_type(work.kind))
    values = session.allocate(groups * width, "aggregates")
    bits = -(-groups // (8 * _BITMAP_BYTES)) * _BITMAP_BYTES
    validity = None if work.count is None else session.allocate(bits, "aggregates")
    is_sum = work.finish in (Finish.DECIMAL, Finish.MEAN)
    packed = struct.pack(
        "<QQQQQdII",
        _address(words[work.value], _WORD),
        _address(words[work.value + 1], _WORD) if is_sum else 0,
        0 if work.count is None else _address(words[work.count], _WORD),
        values.ptr,
        0 if validity is None else validity.ptr,
        work.unit,
        work.finish,
        width,
    )
    launcher = session.launcher
    launcher.start(
        launcher.kernel(_FILE, "cells_finish"),
        *(packed, groups, nulls),
        grid=launcher.grid(groups),
        stream=session.driver_stream,
    )
    return FinishedColumn(work.kind, groups, values, validity)


def _address(column: plc.Column, width: int) -> int:
    data = column.data()
    assert data is not None
    return int(data.ptr) + width * column.offset()
