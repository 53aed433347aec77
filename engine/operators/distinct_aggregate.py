"""GROUP BY with aggregates over distinct arguments."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import chain
from typing import Final, Generic

import pyarrow as pa

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Frame, GroupState
from bamquery.engine.operators.aggregate import group_details
from bamquery.engine.operators.framing import gathered, sliced
from bamquery.engine.operators.group_states import GroupStates, grouped
from bamquery.engine.operators.operator import Operator
from bamquery.engine.parallel import ordered_map
from bamquery.engine.profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field

_INDIFFERENT: Final = frozenset(("min", "max", "bool_and", "bool_or", "any_value", "first", "last"))


def without_needless_distinct(calls: Sequence[AggregateCall]) -> tuple[AggregateCall, ...]:
    """The calls, DISTINCT left out where repeated values change nothing."""
    return tuple(replace(call, distinct=False) if call.function in _INDIFFERENT else call for call in calls)


class DistinctAggregate(Operator[Frame], Generic[Frame]):
    """As `Aggregate`, for calls of which some are DISTINCT.

    Each such call's rows are first grouped by keys and argument, which leaves every argument once; those
    groups are grouped by keys again, and that gives the call's values. Values of all calls, which came by
    different ways, meet in a last grouping by keys.
    """

    def __init__(
        self,
        child: Operator[Frame],
        keys: Sequence[Expression],
        aggregates: Sequence[AggregateCall],
        fields: tuple[Field, ...],
    ) -> None:
        details = group_details(len(keys), fields)
        super().__init__(fields, (child,), OperatorProfile("Distinct aggregate", details))
        self._keys = tuple(keys)
        self._aggregates = tuple(aggregates)
        self._key_columns = tuple(ColumnRef(i, f.name, f.type) for i, f in enumerate(fields[: len(keys)]))

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The groups, once all rows have come."""
        device = context.device
        places = [ColumnRef(len(self._keys) + i, "", c.type) for i, c in enumerate(self._aggregates)]
        meeting = device.aggregation(
            self._key_columns, [AggregateCall("any_value", (place,), place.type) for place in places]
        )
        nothing = device.empty(self.fields)
        with (
            context.memory.reservation("GROUP BY with DISTINCT") as memory,
            closing(self._values(context)) as values,
            closing(grouped(context, values, nothing, meeting, memory)) as groups,
        ):
            for frame in groups:
                self.profile.details["peak_memory"] = context.memory.peak
                yield from sliced(
                    device, device.evaluate([*self._key_columns, *self._answers(places)], frame)
                )

    def _answers(self, places: Sequence[ColumnRef]) -> list[Expression]:
        """The calls' values; a group none of whose rows a DISTINCT call counts has no value of it so far."""
        zero = Literal(pa.scalar(0, pa.int64()))
        return [
            Call("coalesce", (place, zero), place.type) if call.function == "count" else place
            for call, place in zip(self._aggregates, places, strict=True)
        ]

    def _values(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """Keys and the values of some calls, those of the others null; every key comes at least once."""
        device = context.device
        with ExitStack() as stack:
            first, *others = self._first_groupings(context, stack)
            plain = [i for i, call in enumerate(self._aggregates) if not call.distinct]
            with closing(first.frames()) as frames:
                for frame in frames:
                    yield device.evaluate(self._padded(plain), frame)
            for i, grouping in zip(self._distinct(), others, strict=True):
                memory = stack.enter_context(context.memory.reservation("GROUP BY with DISTINCT"))
                fields = self._argument_fields(i)
                argument = ColumnRef(len(self._keys), fields[-1].name, fields[-1].type)
                call = replace(self._aggregates[i], arguments=(argument,), distinct=False, filter=None)
                once = device.aggregation(self._key_columns, [call])
                with (
                    closing(grouping.frames()) as rows,
                    closing(grouped(context, rows, device.empty(fields), once, memory)) as frames,
                ):
                    for frame in frames:
                        yield device.evaluate(self._padded([i]), frame)

    def _first_groupings(
        self, context: ExecutionContext[Frame], stack: ExitStack
    ) -> list[GroupStates[Frame]]:
        """The child's rows grouped by keys, then for each DISTINCT call by keys and argument."""
        device = context.device
        calls = [self._aggregates[i] for i in self._distinct()]
        ways = [device.aggregation(self._keys, [c for c in self._aggregates if not c.distinct])]
        ways += [device.aggregation([*self._keys, *call.arguments], ()) for call in calls]
        counted = [_counted(call) for call in calls]

        def partial(frame: Frame) -> list[GroupState]:
            inputs = [frame, *(device.filter(frame, predicate) for predicate in counted)]
            return [way.partial(rows) for way, rows in zip(ways, inputs, strict=True)]

        groupings: list[GroupStates[Frame]] = []
        for way in ways:
            memory = stack.enter_context(context.memory.reservation("GROUP BY with DISTINCT"))
            groupings.append(GroupStates(context, way, memory))
        with (
            closing(self.children[0].frames(context)) as frames,
            closing(gathered(device, frames)) as chunks,
            closing(ordered_map(context, partial, chunks)) as partials,
        ):
            nothing = partial(device.empty(self.children[0].fields))
            for states in chain([nothing], partials):
                for grouping, state in zip(groupings, states, strict=True):
                    grouping.add(state)
        return groupings

    def _distinct(self) -> list[int]:
        return [i for i, call in enumerate(self._aggregates) if call.distinct]

    def _argument_fields(self, aggregate: int) -> list[Field]:
        """Columns of the rows grouped by keys and argument."""
        kind = self._aggregates[aggregate].arguments[0].type
        return [*self.fields[: len(self._keys)], Field("argument", kind)]

    def _padded(self, given: Sequence[int]) -> list[Expression]:
        """Over frames of the keys and the given calls' values: the keys and all calls' values."""
        columns: list[Expression] = list(self._key_columns)
        for i, call in enumerate(self._aggregates):
            if i in given:
                columns.append(ColumnRef(len(self._keys) + given.index(i), "", call.type))
            else:
                columns.append(Literal(pa.scalar(None, call.type)))
        return columns


def _counted(call: AggregateCall) -> Expression:
    """Which rows a DISTINCT call looks at; the argument is not computed where the filter drops them."""
    present = Call("is_not_null", call.arguments, pa.bool_())
    return present if call.filter is None else Call("and", (call.filter, present), pa.bool_())
