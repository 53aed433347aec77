"""Aggregates whose values were computed in different ways, in one row a group."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.operators.aggregate.group_states import group_rows
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field

_OF_NOTHING: Final[Mapping[str, float]] = MappingProxyType({"count": 0, "regr_count": 0, "entropy": 0.0})
"""Functions whose value for no rows is not null."""


class GroupCombiner:
    """Groups by keys, whose calls' values come in rows of their own: keys, values of some calls, else nulls.

    Attributes:
        keys: the first columns of all rows.
    """

    def __init__(self, keys: Sequence[Field], calls: Sequence[AggregateCall]) -> None:
        self.keys: Final = tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(keys))
        self._fields = [*keys, *(Field("value", call.type) for call in calls)]
        self._calls = tuple(calls)
        self._places = [ColumnRef(len(self.keys) + i, "", call.type) for i, call in enumerate(calls)]

    def make_row(self, given: Sequence[int], columns: Sequence[int] | None = None) -> list[Expression]:
        """A row, over keys and values of the given calls, which are in `columns` (None: behind the keys)."""
        places = range(len(self.keys), len(self.keys) + len(given)) if columns is None else columns
        found: list[Expression] = list(self.keys)
        for i, call in enumerate(self._calls):
            if i in given:
                found.append(ColumnRef(places[given.index(i)], "", call.type))
            else:
                found.append(Literal(pa.scalar(None, call.type)))
        return found

    def combine(
        self,
        context: ExecutionContext[Frame],
        rows: Iterable[Frame],
        memory: Reservation,
        profile: OperatorProfile,
    ) -> Generator[Frame, None, None]:
        """Keys and all calls' values, a row a group; every key comes in one row at least.

        Raises:
            MemoryLimitError: the groups need more than the limit, and no file can take them.
            StorageError: files cannot be written or read back.
        """
        device = context.device
        found = [AggregateCall("any_value", (place,), place.type) for place in self._places]
        combiner = device.aggregation(self.keys, found)
        nothing = device.empty(self._fields)
        with closing(group_rows(context, rows, nothing, combiner, memory=memory, profile=profile)) as groups:
            for frame in groups:
                yield device.evaluate([*self.keys, *self._answers()], frame)

    def _answers(self) -> list[Expression]:
        """The calls' values; a group none of whose rows a call counts has no value of it so far."""
        answers: list[Expression] = []
        for call, place in zip(self._calls, self._places, strict=True):
            nothing = _OF_NOTHING.get(call.function)
            if nothing is None:
                answers.append(place)
            else:
                least = Literal(pa.scalar(nothing, place.type))
                answers.append(Call("coalesce", (place, least), place.type))
        return answers
