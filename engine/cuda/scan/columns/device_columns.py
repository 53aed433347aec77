"""Columns of selected rows while they are being made: values, one byte a row for booleans, and validity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pylibcudf as plc
import rmm

from bamquery.engine.cuda.cache.late_columns import Held
from bamquery.engine.cuda.frames import column_from_buffers
from bamquery.engine.cuda.scan.resources.counter_board import CounterBoard, Slot


@dataclass
class DeviceColumn:
    """One column of `rows` rows.

    Attributes:
        kind: the Arrow type.
        bits: of a value as it is here: 8 for booleans.
        data: the values; may be larger.
        validity: a bit a row in memory for whole vectors; None: no row is null.
        nulls: the word with the number of nulls.
    """

    kind: pa.DataType
    bits: int
    rows: int
    data: rmm.DeviceBuffer
    validity: rmm.DeviceBuffer | None = None
    nulls: Slot | None = None

    def finish(self, board: CounterBoard) -> Held:
        """As libcudf has it; the board was copied back after the column was made."""
        nulls = 0 if self.nulls is None else board.word(self.nulls)
        return column_from_buffers(self.kind, self.rows, self.data, validity=self.validity, null_count=nulls)


@dataclass
class PlacesColumn(DeviceColumn):
    """Places in dictionaries.

    Attributes:
        look_up: gives the values at them.
        values: of the dictionaries, end to end; None: there are none.
        value_count: how many they are.
        value_kind: their type.
        stays: whether they stay there, and rows of them are looked up late.
    """

    look_up: Callable[[rmm.DeviceBuffer, int], Held] | None = None
    values: plc.Column | None = None
    value_count: int = 0
    value_kind: pa.DataType | None = None
    stays: bool = False

    def finish(self, board: CounterBoard) -> Held:
        """The dictionary's values."""
        assert self.look_up is not None
        return self.look_up(self.data, self.rows)


@dataclass
class DeviceStrings:
    """Strings of `rows` rows.

    Attributes:
        kind: the Arrow type.
        data: their bytes; may be larger.
        offsets: of each row and of the end, of `offsets_width` bytes each.
        validity: as a DeviceColumn's.
        nulls: as a DeviceColumn's.
    """

    kind: pa.DataType
    rows: int
    data: rmm.DeviceBuffer
    offsets: rmm.DeviceBuffer
    offsets_width: int
    validity: rmm.DeviceBuffer | None = None
    nulls: Slot | None = None

    def finish(self, board: CounterBoard) -> plc.Column:
        """As libcudf has it; the board was copied back after the validity was made."""
        nulls = 0 if self.nulls is None else board.word(self.nulls)
        return column_from_buffers(
            *(self.kind, self.rows, self.data),
            validity=self.validity,
            null_count=nulls,
            offsets=self.offsets,
            offsets_width=self.offsets_width,
        )


def row_bits(bits: int) -> int:
    """Bits of a value in the GPU's memory: booleans have a byte there."""
    return 8 if bits == 1 else bits
