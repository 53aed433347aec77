"""Frames of pylibcudf columns: made from buffers, and known by their sizes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, overload

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.span import Span
from pylibcudf.types import TypeId

from bamquery.engine.cuda.cache.late_columns import Held, LateColumn, column_of
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.plan.expressions import Expression

_PLACE_BYTES: Final = 4


class _Columns(Sequence[plc.Column]):
    """The columns of a frame; those that are late are copied when they are asked for."""

    def __init__(self, held: tuple[Held, ...]) -> None:
        self._held = held

    def __len__(self) -> int:
        return len(self._held)

    @overload
    def __getitem__(self, index: int) -> plc.Column: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[plc.Column, ...]: ...
    def __getitem__(self, index: int | slice) -> plc.Column | tuple[plc.Column, ...]:
        if isinstance(index, slice):
            return tuple(map(column_of, self._held[index]))
        return column_of(self._held[index])


@dataclass(frozen=True)
class CudaFrame:
    """Columns by position in a GPU's memory, and a row count that survives having no columns.

    Attributes:
        held: all of `rows` values, of the types that `device_type` gives for those of the plan's fields.
        rows: less than 2**31, as libcudf counts them.
        shared: parts of expressions that are asked for more than once, and their values over the frame once
            they are known.
    """

    held: tuple[Held, ...]
    rows: int
    shared: dict[Expression, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def columns(self) -> Sequence[plc.Column]:
        """The columns' values: of late columns each is copied once somebody takes it from here."""
        return _Columns(self.held)

    def table(self) -> plc.Table:
        """The columns as libcudf's functions take them; there is at least one."""
        return plc.Table(list(self.columns))


@dataclass(frozen=True, slots=True)
class CudaPositions:
    """See `bamquery.engine.device.Positions`: int32, never null."""

    column: plc.Column

    def __len__(self) -> int:
        return self.column.size()

    @property
    def address(self) -> int:
        """Where they are on the GPU, as long as this is kept; there is at least one."""
        data = self.column.data()
        assert data is not None
        return int(data.ptr) + 4 * self.column.offset()


def make_frame(columns: Sequence[Held], rows: int) -> CudaFrame:
    """A frame of columns that have `rows` values each."""
    assert all(column.size() == rows for column in columns)
    return CudaFrame(tuple(columns), rows)


def frame_sharing(frame: CudaFrame, parts: Collection[Expression]) -> CudaFrame:
    """The frame, over which the values of those parts of expressions are computed once."""
    return replace(frame, shared=dict.fromkeys(parts))


def column_from_buffers(
    kind: pa.DataType,
    rows: int,
    data: Span,
    *,
    validity: Span | None = None,
    null_count: int = 0,
    offsets: Span | None = None,
    offsets_width: int = 8,
) -> plc.Column:
    """A column over device memory, which the column keeps; nothing is copied.

    Args:
        kind: the Arrow type of the values; for a dictionary's indices, the index type.
        rows: values.
        data: values, one after the other; one byte each for booleans; the bytes of all strings for strings.
        validity: a bit a row, 1 for a value, its bytes a multiple of 64; None: there are no nulls.
        null_count: bits of `validity` that are 0.
        offsets: for strings and binaries, `rows + 1` places in `data`, the first one 0.
        offsets_width: bytes of each: 4, or 8, which libcudf takes for strings of any length.
    """
    children: list[plc.Column] = []
    if offsets is not None:
        width = plc.DataType(TypeId.INT64 if offsets_width == 8 else TypeId.INT32)
        children.append(plc.Column(width, rows + 1, offsets, None, 0, 0, []))
    mask = validity if null_count else None
    return plc.Column(device_type(kind), rows, data, mask, null_count, 0, children)


def held_bytes(column: Held) -> int:
    """Device memory that the column's rows occupy; of late columns that of their places."""
    if not isinstance(column, LateColumn):
        return column_bytes(column)
    return 0 if column.places.begin is not None else _PLACE_BYTES * column.size()


def column_bytes(column: plc.Column) -> int:
    """Device memory that the column's rows occupy; for a slice of strings as if all had equal lengths."""
    rows = column.size()
    mask = -(-rows // 8) if column.null_mask() is not None else 0
    if column.type().id() == TypeId.LIST:
        offsets, values = column.child(0), column.child(1)
        share = column_bytes(values) * rows // max(offsets.size() - 1, 1)
        return share + plc.types.size_of(offsets.type()) * (rows + 1) + mask
    if column.type().id() != TypeId.STRING:
        return rows * plc.types.size_of(column.type()) + mask
    data = column.data()
    if not column.num_children() or data is None:
        return mask
    offsets = column.child(0)
    width = plc.types.size_of(offsets.type())
    return data.size * rows // max(offsets.size() - 1, 1) + width * (rows + 1) + mask
