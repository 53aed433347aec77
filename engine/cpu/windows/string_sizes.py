"""Bytes of the strings in a window's frames, known before any of them is copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.frames import longest_string, make_batch, string_lengths
from bamquery.engine.cpu.kernels import Column
from bamquery.engine.cpu.vectors import Vector
from bamquery.engine.execution.string_limits import require_room
from bamquery.engine.windows.ranges import Ranges, frame_sizes, frame_sums


@dataclass(frozen=True, slots=True)
class FrameStringSizes:
    """Of rows' strings.

    Attributes:
        before: bytes of the rows before each, and of all.
        longest: of the strings of one row.
    """

    before: Vector
    longest: int

    @staticmethod
    def from_rows(rows: Column) -> FrameStringSizes | None:
        """Those of a column, or of a struct's fields; None where there are no strings."""
        fields = cast("pa.StructArray", rows).flatten() if pa.types.is_struct(rows.type) else [rows]
        batch = make_batch(fields, len(rows))
        longest = longest_string(batch.columns)
        if not longest:
            return None
        lengths = string_lengths(batch.columns, batch.num_rows)
        return FrameStringSizes(Vector(lengths).totals(), longest)

    def frame_bytes(self, frames: Sequence[Ranges[Vector]]) -> NDArray[np.int64]:
        """Bytes of all strings of each frame."""
        return frame_sums(self.before, frames).values

    def require_room(self, function: str, frames: Sequence[Ranges[Vector]], between: int | None) -> None:
        """Ask before the answers of frames are made: a text of each, or with `between` bytes between all.

        Raises:
            LargeStringError: they take too much.
        """
        count = len(frames[0].start)
        size = int(self.frame_bytes(frames).sum())
        if between is None:
            size = min(size, count * self.longest)
        else:
            size += between * int(frame_sizes(frames).values.sum())
        require_room(f"{function}() over a window", size, count)
