"""GROUP BY with aggregates over distinct arguments."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import chain
from typing import Final, Generic

import pyarrow as pa

from bamquery.engine.device import Frame, GroupState
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate.aggregate import group_details, grouping_name, push_filter_to_groups
from bamquery.engine.operators.aggregate.combine import GroupCombiner
from bamquery.engine.operators.aggregate.group_states import GroupStates, group_rows
from bamquery.engine.operators.aggregate.holistic_states import HolisticStates
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.frame_sizing import gather_frames, slice_frame
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.base.out_of_memory_split import map_chunks_split_on_out_of_memory
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    children,
)
from bamquery.plan.nodes import Field

_INDIFFERENT: Final = frozenset(
    {
        *("min", "max", "bool_and", "bool_or", "any_value", "first", "last", "bit_and", "bit_or"),
        *("arg_min", "arg_max", "arg_min_null", "arg_max_null"),
    }
)


def drop_needless_distinct(calls: Sequence[AggregateCall]) -> tuple[AggregateCall, ...]:
    """The calls, DISTINCT left out where repeated values change nothing."""
    return tuple(replace(call, distinct=False) if call.function in _INDIFFERENT else call for call in calls)


class DistinctAggregate(Operator[Frame], Generic[Frame]):
    """As `Aggregate`, for calls of which some are DISTINCT.

    Each such call's rows are first grouped by keys and argument, which leaves every argument once; those
    groups are grouped by keys again, and that gives the call's values. Values of all calls, which came by
    different ways, meet in a last grouping by keys.
    """

    runs_again = True

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
        # One for each grouping of rows, of arguments, and of values.
        self.reservations = 2 + 2 * sum(call.distinct for call in aggregates)
        self._combiner = GroupCombiner(fields[: len(keys)], aggregates)

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """As `Aggregate.push_dynamic_filter`."""
        return push_filter_to_groups(self.children[0], self._keys, value, dynamic_filter)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The groups, once all rows have come."""
        with (
            context.memory.reservation("GROUP BY with DISTINCT") as memory,
            closing(self._values(context)) as values,
            closing(self._combiner.combine(context, values, memory, self.profile)) as groups,
        ):
            for frame in groups:
                self.profile.details["peak_memory"] = context.memory.peak
                yield from slice_frame(context.device, frame)

    def _values(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """Keys and the values of some calls, those of the others null; every key comes at least once."""
        device = context.device
        with ExitStack() as stack:
            first, *others = self._first_groupings(context, stack)
            plain = [i for i, call in enumerate(self._aggregates) if not call.distinct]
            with closing(first.frames()) as frames:
                for frame in frames:
                    yield device.evaluate(self._combiner.make_row(plain), frame)
            for i, grouping in zip(self._distinct(), others, strict=True):
                fields = self._argument_fields(i)
                call = _read_distinct_inputs(self._aggregates[i], len(self._keys))
                memory = stack.enter_context(context.memory.reservation(grouping_name(self._keys, [call])))
                once = device.aggregation(self._combiner.keys, [call])
                with (
                    closing(grouping.frames()) as rows,
                    closing(
                        group_rows(
                            context,
                            rows,
                            device.empty(fields),
                            once,
                            memory=memory,
                            profile=self.profile,
                            kind=HolisticStates,
                        )
                    ) as frames,
                ):
                    for frame in frames:
                        yield device.evaluate(self._combiner.make_row([i]), frame)

    def _first_groupings(
        self, context: ExecutionContext[Frame], stack: ExitStack
    ) -> list[GroupStates[Frame]]:
        """The child's rows grouped by keys, then for each DISTINCT call by keys and argument."""
        device = context.device
        calls = [self._aggregates[i] for i in self._distinct()]
        ways = [device.aggregation(self._keys, [c for c in self._aggregates if not c.distinct])]
        ways += [device.aggregation([*self._keys, *_inputs(call)], ()) for call in calls]
        counted = [_counted_filter(call) for call in calls]

        def partial(frame: Frame) -> list[GroupState]:
            inputs = [frame, *(device.filter(frame, predicate) for predicate in counted)]
            return [way.partial(rows) for way, rows in zip(ways, inputs, strict=True)]

        groupings: list[GroupStates[Frame]] = []
        for way in ways:
            memory = stack.enter_context(context.memory.reservation("GROUP BY with DISTINCT"))
            grouping: GroupStates[Frame] = HolisticStates(context, way, memory, self.profile)
            groupings.append(stack.enter_context(closing(grouping)))
        with (
            closing(self.children[0].frames(context)) as frames,
            closing(gather_frames(context, frames)) as chunks,
            closing(map_chunks_split_on_out_of_memory(context, partial, chunks)) as partials,
        ):
            nothing = partial(device.empty(self.children[0].fields))
            for states in chain([nothing], partials):
                for grouping, state in zip(groupings, states, strict=True):
                    grouping.add(state)
        return groupings

    def _distinct(self) -> list[int]:
        return [i for i, call in enumerate(self._aggregates) if call.distinct]

    def _argument_fields(self, aggregate: int) -> list[Field]:
        """Columns of the rows grouped by keys and arguments."""
        inputs = _inputs(self._aggregates[aggregate])
        return [*self.fields[: len(self._keys)], *(Field("argument", value.type) for value in inputs)]


def _inputs(call: AggregateCall) -> tuple[Expression, ...]:
    """What a DISTINCT call is computed from: its arguments, and what these are made of, if it orders by that.

    `string_agg(DISTINCT number ORDER BY number)` takes the numbers' strings.
    """

    def is_made(expression: Expression) -> bool:
        if expression in call.arguments or isinstance(expression, Literal):
            return True
        below = children(expression)
        return bool(below) and all(map(is_made, below))

    others = [key.expression for key in call.order if not is_made(key.expression)]
    return (*call.arguments, *dict.fromkeys(others))


def _counted_filter(call: AggregateCall) -> Expression:
    """Which rows a DISTINCT call looks at; the argument is not computed where the filter drops them."""
    present: list[Expression] = [Call("is_not_null", (value,), pa.bool_()) for value in call.arguments]
    conditions = present if call.filter is None else [call.filter, *present]
    return conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions), pa.bool_())


def _read_distinct_inputs(call: AggregateCall, place: int) -> AggregateCall:
    """The call over rows whose columns from `place` on are its inputs, each combination once."""
    inputs = _inputs(call)
    columns = tuple(ColumnRef(place + i, "argument", value.type) for i, value in enumerate(inputs))

    def step(expression: Expression) -> Expression:
        if expression in inputs:
            return columns[inputs.index(expression)]
        match expression:
            case Call(arguments=arguments):
                return replace(expression, arguments=tuple(map(step, arguments)))
            case Cast(argument=argument):
                return replace(expression, argument=step(argument))
            case _:
                return expression

    order = tuple(replace(key, expression=step(key.expression)) for key in call.order)
    return replace(call, arguments=columns[: len(call.arguments)], distinct=False, filter=None, order=order)
