"""The rows of a window on a device: what calls ask of them, beside computing with positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa

from bamquery.engine.windows.ranges import Ranges
from bamquery.engine.windows.vectors import Mask, V, Vectors
from bamquery.plan.expressions import AggregateCall, Expression

C = TypeVar("C")
"""A device's column."""
A = TypeVar("A")
"""What gives the values of one call, for some rows at a time: strings of all rows may be too large."""

Outside: TypeAlias = tuple[Any, Any]
"""A device's states, or None, of what is before the rows and behind them."""


class WindowRows(ABC, Generic[V, C, A]):
    """At least one row, in a window's order.

    Attributes:
        count: how many rows there are.
        vectors: makes vectors of the device.
    """

    count: int
    vectors: Vectors[V]

    @abstractmethod
    def evaluate(self, expressions: Sequence[Expression]) -> list[C]:
        """The expressions' values.

        Raises:
            ExecutionError: one cannot be computed.
        """

    @abstractmethod
    def changes(self, expressions: Sequence[Expression]) -> Mask[V]:
        """Whether each row has other values than the one before, where nulls are equal; the first has.

        Raises:
            ExecutionError: a value cannot be computed.
        """

    @abstractmethod
    def has_nulls(self, column: C) -> bool:
        """Whether one of the values is null."""

    @abstractmethod
    def valid(self, column: C) -> Mask[V]:
        """Where values are not null."""

    @abstractmethod
    def numbers(self, column: C, null: int) -> V:
        """A column of whole numbers, with one for nulls."""

    @abstractmethod
    def ranks(self, keys: C, targets: C, kind: pa.DataType) -> tuple[V, V]:
        """Numbers that order the values of both columns, of a type, equal for equal ones."""

    @abstractmethod
    def to_values(self, numbers: V, kind: pa.DataType, valid: Mask[V] | None = None) -> A:
        """Numbers as a call's values of a type; null where they are not valid."""

    @abstractmethod
    def values_at(self, values: C, places: V, there: Mask[V]) -> A:
        """Values of other rows; null where none is there, whatever the place."""

    @abstractmethod
    def neighbours(self, call: AggregateCall, found: A, there: Mask[V], offsets: C) -> A:
        """Values found for lag or lead; the call's default where no row is there, null where the offset is.

        Raises:
            ExecutionError: a default cannot be computed.
        """

    @abstractmethod
    def aggregate(self, call: AggregateCall, frames: Sequence[Ranges[V]], outside: Outside | None) -> A:
        """The aggregate of each row's frame.

        With `outside`, frames may begin before the rows and end behind them: there these states are.

        Raises:
            ExecutionError: an argument cannot be computed, or a value does not fit its type.
        """

    @abstractmethod
    def materialize(self, values: A, kind: pa.DataType) -> A:
        """The same, computed by now, but for strings.

        Raises:
            ExecutionError: a value cannot be computed.
        """
