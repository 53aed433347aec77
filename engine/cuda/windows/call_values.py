"""Values of a call over a window for some rows at a time: strings of all of them may be too large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.kernels import Kernels, Side
from bamquery.engine.cuda.keys.portions import fitting_ends, lengths_at, portion_bytes, string_lengths
from bamquery.engine.cuda.vectors import Mask, Vector


class CallValues(Protocol):
    """The values of one call."""

    def lengths(self) -> Vector | None:
        """Bytes of the strings that are copied for each row, at most; None: none are."""
        ...

    def compute_rows(self, start: int, stop: int) -> plc.Column:
        """The values of the rows from `start` to before `stop`, of which there is one at least.

        Raises:
            ExecutionError: a value cannot be computed.
        """
        ...


@dataclass(frozen=True)
class ComputedValues:
    """Values that are there."""

    kernels: Kernels
    column: plc.Column

    def lengths(self) -> None:
        """They are not copied."""
        return

    def compute_rows(self, start: int, stop: int) -> plc.Column:
        """Some of them, without a copy."""
        return self.kernels.slice_column(self.column, start, stop)


@dataclass(frozen=True)
class RowValues:
    """For each row a value of another row, or null.

    Attributes:
        values: of all rows.
        places: which; null where one is out of bounds.
    """

    kernels: Kernels
    values: plc.Column
    places: Vector

    def lengths(self) -> Vector | None:
        """Those of the values' strings."""
        lengths = string_lengths(self.kernels, [self.values])
        return None if lengths is None else lengths_at(self.kernels, lengths, self.places.column)

    def compute_rows(self, start: int, stop: int) -> plc.Column:
        """The values at the places."""
        places = self.places.slice(start, stop).column
        return self.kernels.gather([self.values], places, nullify=True)[0]


@dataclass(frozen=True)
class NeighbourValues:
    """Of lead or lag: the value some rows away, or the default where no row is there.

    Attributes:
        found: those values.
        there: whether a row is there.
        default: one for all rows, or one for each.
        given: whether it is known how many rows away; None: for all rows.
        kind: of the values.
    """

    kernels: Kernels
    found: CallValues
    there: Mask
    default: Side
    given: plc.Column | None
    kind: pa.DataType

    def lengths(self) -> Vector | None:
        """Those of the values', or of the default's."""
        found = self.found.lengths()
        if isinstance(self.default, plc.Column):
            default = string_lengths(self.kernels, [self.default])
        else:
            default = string_lengths(self.kernels, [self.kernels.repeat_scalar(self.default, 1)])
            default = None if default is None else Vector.full(self.kernels, default.total(), len(self.there))
        if found is None or default is None:
            return found or default
        return self.there.choose(found, default)

    def compute_rows(self, start: int, stop: int) -> plc.Column:
        """See `CallValues`."""
        kernels, default = self.kernels, self.default
        if isinstance(default, plc.Column):
            default = kernels.slice_column(default, start, stop)
        there = kernels.slice_column(self.there.column, start, stop)
        result = kernels.where(there, self.found.compute_rows(start, stop), default)
        if self.given is None:
            return result
        return kernels.where(kernels.slice_column(self.given, start, stop), result, kernels.null(self.kind))


@dataclass(frozen=True)
class FrameValues:
    """For each row the value of its frame, which neighbours may share.

    Attributes:
        numbers: each row's frame, ascending.
        values: of frames from one number to before another.
        most: bytes of the text of each frame at most.
    """

    kernels: Kernels
    numbers: Vector
    values: Callable[[int, int], plc.Column]
    most: Vector

    def lengths(self) -> Vector:
        """Those of the rows' frames."""
        return self.most.take(self.numbers)

    def compute_rows(self, start: int, stop: int) -> plc.Column:
        """Those of the rows' frames."""
        first, last = self.numbers.item(start), self.numbers.item(stop - 1)
        own = self.numbers.slice(start, stop) - first
        return self.kernels.gather([self.values(first, last + 1)], own.column)[0]


def portion_ends(kernels: Kernels, calls: Sequence[CallValues], start: int, stop: int) -> list[int]:
    """Where portions of the rows from `start` to before `stop` end whose strings can be made at once."""
    lengths: Vector | None = None
    for call in calls:
        own = call.lengths()
        if own is not None:
            lengths = own if lengths is None else lengths + own
    if lengths is None or stop - start < 2:
        return [stop]
    ends = fitting_ends(kernels, lengths.slice(start, stop), portion_bytes(kernels))
    return [start + end for end in ends]
