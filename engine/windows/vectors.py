"""What computing with positions asks of a device: columns of numbers and of truth values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar


class Vector(Protocol):
    """Numbers without nulls, of type int64 where nothing else is said."""

    def __len__(self) -> int: ...

    def __add__(self, other: Self | int, /) -> Self: ...

    def __sub__(self, other: Self | int, /) -> Self: ...

    def __mul__(self, other: Self | int, /) -> Self: ...

    def __floordiv__(self, other: Self | int, /) -> Self:
        """Of numbers that are not below zero, as below."""
        ...

    def __mod__(self, other: Self | int, /) -> Self: ...

    def __neg__(self) -> Self: ...

    def __lt__(self, other: Self | int, /) -> Mask[Self]: ...

    def __le__(self, other: Self | int, /) -> Mask[Self]: ...

    def __gt__(self, other: Self | int, /) -> Mask[Self]: ...

    def __ge__(self, other: Self | int, /) -> Mask[Self]: ...

    def equals(self, other: Self | int) -> Mask[Self]:
        """Where both are equal."""
        ...

    def ratio(self, divisor: Self) -> Self:
        """The quotients as float64."""
        ...

    def minimum(self, other: Self | int) -> Self:
        """The smaller of two."""
        ...

    def maximum(self, other: Self | int) -> Self:
        """The larger of two."""
        ...

    def clip(self, low: Self | int, high: Self | int) -> Self:
        """What is below or above is the bound."""
        ...

    def take(self, places: Self) -> Self:
        """Those at positions, all of which are there."""
        ...

    def slice(self, start: int, end: int) -> Self:
        """Those from `start` to before `end`."""
        ...

    def totals(self) -> Self:
        """Sums of none, the first, the first two, ... up to all: one more than there are numbers."""
        ...

    def repeats(self, counts: Self) -> Self:
        """Each number so many times."""
        ...

    def changes(self) -> Mask[Self]:
        """Whether each of at least one number differs from the one before; the first does."""
        ...


V = TypeVar("V", bound=Vector)


class Mask(Protocol[V]):
    """Truth values without nulls."""

    def __len__(self) -> int: ...

    def __and__(self, other: Self, /) -> Self: ...

    def __or__(self, other: Self, /) -> Self: ...

    def __invert__(self) -> Self: ...

    def choose(self, chosen: V, otherwise: V | float) -> V:
        """One where it is true, the other where it is not."""
        ...

    def numbers(self) -> V:
        """1 for true, 0 for false."""
        ...

    def totals(self) -> V:
        """How many are true of none, the first, the first two, ... up to all."""
        ...

    def places(self) -> V:
        """Ascending positions of what is true."""
        ...

    def any(self) -> bool:
        """Whether one is true; the host waits."""
        ...


class Vectors(Protocol[V]):
    """Where vectors come from."""

    def positions(self, rows: int) -> V:
        """0, 1, 2, ..."""
        ...

    def full(self, value: int, rows: int) -> V:
        """One number so many times."""
        ...

    def concatenate(self, vectors: Sequence[V]) -> V:
        """The numbers of one vector after those of another."""
        ...

    def interleave(self, vectors: Sequence[V]) -> V:
        """The first number of each, the second of each, ..."""
        ...
