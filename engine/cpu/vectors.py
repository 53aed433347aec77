"""Numbers and truth values of numpy, as `bamquery.engine.windows.vectors` wants them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.statement_context.cancellation import check_cancelled


class Vector:
    """Numbers, int64 or float64. A query can stop before each pass over them that takes a while."""

    __slots__ = ("values",)

    def __init__(self, values: NDArray[Any]) -> None:
        self.values: Final = values

    def __len__(self) -> int:
        return len(self.values)

    def __add__(self, other: Vector | int) -> Vector:
        return Vector(self.values + _operand(other))

    def __sub__(self, other: Vector | int) -> Vector:
        return Vector(self.values - _operand(other))

    def __mul__(self, other: Vector | int) -> Vector:
        return Vector(self.values * _operand(other))

    def __floordiv__(self, other: Vector | int) -> Vector:
        return Vector(self.values // _operand(other))

    def __mod__(self, other: Vector | int) -> Vector:
        return Vector(self.values % _operand(other))

    def __neg__(self) -> Vector:
        return Vector(-self.values)

    def __lt__(self, other: Vector | int) -> Mask:
        return Mask(self.values < _operand(other))

    def __le__(self, other: Vector | int) -> Mask:
        return Mask(self.values <= _operand(other))

    def __gt__(self, other: Vector | int) -> Mask:
        return Mask(self.values > _operand(other))

    def __ge__(self, other: Vector | int) -> Mask:
        return Mask(self.values >= _operand(other))

    def equals(self, other: Vector | int) -> Mask:
        """Where both are equal."""
        return Mask(self.values == _operand(other))

    def ratio(self, divisor: Vector) -> Vector:
        """The quotients as float64."""
        return Vector(self.values / divisor.values)

    def minimum(self, other: Vector | int) -> Vector:
        """The smaller of two."""
        return Vector(np.minimum(self.values, _operand(other)))

    def maximum(self, other: Vector | int) -> Vector:
        """The larger of two."""
        return Vector(np.maximum(self.values, _operand(other)))

    def clip(self, low: Vector | int, high: Vector | int) -> Vector:
        """What is below or above is the bound."""
        return Vector(np.clip(self.values, _operand(low), _operand(high)))

    def take(self, places: Vector) -> Vector:
        """Those at positions, all of which are there."""
        check_cancelled()
        return Vector(self.values[places.values])

    def slice(self, start: int, end: int) -> Vector:
        """Those from `start` to before `end`."""
        return Vector(self.values[start:end])

    def totals(self) -> Vector:
        """Sums of none, the first, the first two, ... up to all."""
        check_cancelled()
        sums = np.zeros(len(self.values) + 1, np.int64)
        np.cumsum(self.values, dtype=np.int64, out=sums[1:])
        return Vector(sums)

    def repeats(self, counts: Vector) -> Vector:
        """Each number so many times."""
        return Vector(np.repeat(self.values, counts.values))

    def changes(self) -> Mask:
        """Whether each differs from the one before; the first does."""
        check_cancelled()
        changes = np.ones(len(self.values), np.bool_)
        np.not_equal(self.values[1:], self.values[:-1], out=changes[1:])
        return Mask(changes)


class Mask:
    """Truth values."""

    __slots__ = ("values",)

    def __init__(self, values: NDArray[np.bool_]) -> None:
        self.values: Final = values

    def __len__(self) -> int:
        return len(self.values)

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.values & other.values)

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.values | other.values)

    def __invert__(self) -> Mask:
        return Mask(~self.values)

    def choose(self, chosen: Vector, otherwise: Vector | float) -> Vector:
        """One where it is true, the other where it is not."""
        return Vector(np.where(self.values, chosen.values, _operand(otherwise)))

    def numbers(self) -> Vector:
        """1 for true, 0 for false."""
        return Vector(self.values.astype(np.int64))

    def totals(self) -> Vector:
        """How many are true of none, the first, the first two, ... up to all."""
        return Vector(self.values.view(np.int8)).totals()

    def places(self) -> Vector:
        """Ascending positions of what is true."""
        return Vector(np.flatnonzero(self.values))

    def any(self) -> bool:
        """Whether one is true."""
        return bool(self.values.any())


class Vectors:
    """Where they come from."""

    def positions(self, rows: int) -> Vector:
        """0, 1, 2, ..."""
        return Vector(np.arange(rows))

    def full(self, value: int, rows: int) -> Vector:
        """One number so many times."""
        return Vector(np.full(rows, value, np.int64))

    def concatenate(self, vectors: Sequence[Vector]) -> Vector:
        """The numbers of one vector after those of another."""
        return Vector(np.concatenate([vector.values for vector in vectors]))

    def interleave(self, vectors: Sequence[Vector]) -> Vector:
        """The first number of each, the second of each, ..."""
        return Vector(np.stack([vector.values for vector in vectors], axis=1).ravel())


def _operand(other: Vector | float) -> Any:
    return other.values if isinstance(other, Vector) else other
