"""A join's keys as a list that conditions look in, where they lie in the GPU's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.engine.cuda.kernels import INT64, Kernels, view_as
from bamquery.storage.statistics.late_values import LateValues

MOST_BITS: Final = 1 << 30
"""Of a set of numbers: between its least one and its greatest one."""
_INT32: Final = plc.DataType(TypeId.INT32)
_MOST_APART: Final = 1 << 20
"""Keys of which some may lie farther from each other than sets of bits reach: each chunk hashes them anew."""


class LateKeys(LateValues):
    """See `bamquery.storage.statistics.late_values`.

    Attributes:
        column: the values, none null.
        numbers: what they count, int64.
    """

    def __init__(
        self,
        column: plc.Column,
        numbers: plc.Column,
        kind: pa.DataType,
        bounds: tuple[int, int],
        copy: Callable[[plc.Column], pa.Array[Any]],
    ) -> None:
        """`copy`: each value of a column once, in the host's memory."""
        super().__init__(kind, column.size(), bounds)
        self.column = column
        self.numbers = numbers
        self._copied = copy

    @property
    def address(self) -> int:
        """Of the first of `numbers`."""
        data = self.numbers.data()
        assert data is not None
        return int(data.ptr) + 8 * self.numbers.offset()

    def _copy(self) -> pa.Array[Any]:
        return self._copied(self.column)


def make_late_keys(
    kernels: Kernels,
    columns: Sequence[plc.Column],
    bounds: tuple[pa.Scalar[Any], pa.Scalar[Any]],
    copy: Callable[[plc.Column], pa.Array[Any]],
) -> LateKeys | None:
    """Of columns of one type that counts something, one at least; None where they are too many for a list."""
    least, greatest = _counts(bounds)
    if greatest - least >= MOST_BITS and sum(one.size() for one in columns) > _MOST_APART:
        return None
    known = [kernels.keep([one], kernels.is_valid(one))[0] if one.null_count() else one for one in columns]
    column = kernels.concatenate(known)
    kind = bounds[0].type
    numbers = column
    if not pa.types.is_integer(kind):
        numbers = view_as(column, _INT32 if kind.bit_width == 32 else INT64)
    return LateKeys(column, kernels.convert(numbers, INT64), kind, (least, greatest), copy)


def _counts(bounds: tuple[pa.Scalar[Any], pa.Scalar[Any]]) -> tuple[int, int]:
    kind = bounds[0].type
    stored: Any = pa.array(list(bounds), kind)
    if not pa.types.is_integer(kind):
        stored = stored.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    least, greatest = stored.to_pylist()
    return least, greatest
