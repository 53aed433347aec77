"""Sequences whose elements are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """So many elements, each made once. Of hundreds of columns a query names a few.

    Thread-safe, but that two who ask at once may make an element twice. What making one raises, indexing
    raises, each time.
    """

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        """`make` is given a position from 0 on, below `count`."""
        self._positions: Final = range(count)
        self._make = make
        self._made: dict[int, T] = {}

    @overload
    def __getitem__(self, position: int) -> T: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[T, ...]: ...

    def __getitem__(self, position: int | slice) -> T | tuple[T, ...]:
        """An element, or those of a slice."""
        if isinstance(position, slice):
            return tuple(self[place] for place in self._positions[position])
        place = self._positions[position]
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]

    def __len__(self) -> int:
        """How many there are, whether made or not."""
        return len(self._positions)

    def __eq__(self, other: object) -> bool:
        """Whether the other one's elements are equal; makes all of them."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """That of a tuple of the elements."""
        return hash(tuple(self))
