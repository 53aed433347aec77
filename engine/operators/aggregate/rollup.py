"""Grouping sets whose groups are made of the groups of a finer set, and not of rows."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any, Final, Generic

from bamquery.engine.device import Aggregation, Frame, GroupState
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate.aggregate import group_details
from bamquery.engine.operators.aggregate.group_states import GroupStates
from bamquery.engine.operators.aggregate.grouping_sets_expand import SET_NUMBER
from bamquery.engine.operators.base.frame_sizing import gather_frames, slice_frame
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.base.out_of_memory_split import map_chunks_split_on_out_of_memory
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression
from bamquery.plan.nodes import Field

_ROLLED_UP: Final = frozenset(
    {
        *(
            "count_star",
            "count",
            "sum",
            "avg",
            "min",
            "max",
            "bool_and",
            "bool_or",
            "bit_and",
            "bit_or",
            "bit_xor",
        ),
        *("stddev_samp", "stddev_pop", "var_samp", "var_pop"),
    }
)
"""Functions for which it does not matter in which order rows come, and whose states stay small."""


def can_rollup(calls: Sequence[AggregateCall], keys: int, sets: Sequence[Sequence[int]]) -> bool:
    """Whether the groups of all sets can be made of the groups by all their keys."""
    return (
        keys > 0
        and bool(sets)
        and all(call.function in _ROLLED_UP and not call.distinct and not call.order for call in calls)
    )


class Rollup(Operator[Frame], Generic[Frame]):
    """Keys, null where a set is without them, the set's number, then aggregates.

    Each chunk of rows is grouped once, by all keys; the groups of a set are made of those, or of the groups
    of the smallest set that has all its keys. That is done where no set has all keys, too: even if a chunk
    then has as many groups as rows, they are not kept, and to group them is what each set needs anyway.
    """

    reservations = 1

    def __init__(
        self,
        child: Operator[Frame],
        keys: Sequence[Expression],
        aggregates: Sequence[AggregateCall],
        sets: Sequence[Sequence[int]],
        fields: tuple[Field, ...],
    ) -> None:
        details = {"sets": len(sets), **group_details(len(keys) + 1, fields)}
        super().__init__(fields, (child,), OperatorProfile("Roll up", details))
        self._keys = tuple(keys)
        self._aggregates = tuple(aggregates)
        self._steps = _steps(sets)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The groups of all sets, once all rows have come."""
        device = context.device
        finest: Aggregation[Frame, Any] = device.aggregation(self._keys, self._aggregates)
        columns = [ColumnRef(i, f.name, f.type) for i, f in enumerate(self.fields[: len(self._keys) + 1])]
        assert columns[-1].type == SET_NUMBER.type
        all_sets: Aggregation[Frame, Any] = device.aggregation(columns, self._aggregates)

        def partial(frame: Frame) -> list[GroupState]:
            rows = finest.partial(frame)
            states: dict[int, Any] = {}
            for number, members, source in self._steps:
                finer = rows if source is None else states[source]
                states[number] = finest.rollup(finer, members, number)
            return list(states.values())

        with (
            context.memory.reservation("GROUP BY") as memory,
            closing(GroupStates(context, all_sets, memory, self.profile)) as groups,
        ):
            with (
                closing(self.children[0].frames(context)) as rows,
                closing(gather_frames(context, rows)) as chunks,
                closing(map_chunks_split_on_out_of_memory(context, partial, chunks)) as partials,
            ):
                for states in partials:
                    for state in states:
                        groups.add(state)
            with closing(groups.frames()) as frames:
                for frame in frames:
                    self.profile.details["peak_memory"] = memory.peak
                    yield from slice_frame(device, frame)


def _steps(sets: Sequence[Sequence[int]]) -> tuple[tuple[int, tuple[int, ...], int | None], ...]:
    """For each set its number, its keys, and the set that its groups are made of; large ones first."""
    numbers = sorted(range(len(sets)), key=lambda number: -len(set(sets[number])))
    steps: list[tuple[int, tuple[int, ...], int | None]] = []
    for place, number in enumerate(numbers):
        members = set(sets[number])
        # The last of those before it has the fewest keys, and so the fewest groups, as a rule.
        finer = [other for other in numbers[:place] if members <= set(sets[other])]
        steps.append((number, tuple(sorted(members)), finer[-1] if finer else None))
    return tuple(steps)
