"""Groups whose gathered values do not fit in memory: each different value once, with how often it comes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, Final, Generic, TypeAlias

from bamquery.data_types.type_groups import value_type
from bamquery.engine.device import Aggregation, Frame, GroupState
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Division, Reservation
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.aggregate.combine import GroupCombiner
from bamquery.engine.operators.aggregate.group_states import GroupStates
from bamquery.engine.operators.aggregate.value_counts import COUNTED, ValueCounts
from bamquery.engine.operators.base.frame_sizing import GATHERED_ROWS
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, Cast, ColumnRef, Expression, SortKey
from bamquery.plan.nodes import Field

_ROWS: Final = 1 << 22
"""Values that fit, with what becomes of them, the room that is kept for what a thread works on at most."""
_LEAST_ROWS: Final = 4096
"""Of values that are counted at once."""
_STEPS: Final = (1, 4, 1, 1, 1)
"""Parts of memory, of which the counts of an argument have one: other aggregates, rows in order (of which two
runs must be merged at least), what is known of groups, modes, and answers."""

Argument: TypeAlias = tuple[tuple[Expression, ...], Expression | None, tuple[SortKey, ...]]
Task: TypeAlias = tuple[int, GroupState, int, int]
"""Argument, or -1 for what is no value; state; its number; the first value."""


def calls_of_value_counts(calls: Sequence[AggregateCall]) -> tuple[int, ...]:
    """Which calls gather values of which it is enough to know each different one, and how often it comes."""
    # Texts that are joined must fit, and a call may share its values with another one of the same argument.
    joined = {_argument(call) for call in calls if call.function == "string_agg"}
    return tuple(
        i for i, call in enumerate(calls) if call.function in COUNTED and _argument(call) not in joined
    )


class CountedValues(Generic[Frame]):
    """States go in, groups come out; what is held meanwhile goes to files where it does not fit.

    For each argument of aggregates that gather values the rows are grouped by keys and value, which gives
    counts; other aggregates stay states. Answers of both meet in a last grouping by keys.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        aggregation: Aggregation[Frame, Any],
        memory: Reservation,
        profile: OperatorProfile,
        level: int,
    ) -> None:
        """`level`: how often states were split into files before."""
        self._context = context
        self._aggregation = aggregation
        self._counted = calls_of_value_counts(aggregation.calls)
        self._profile = profile
        self._numbers = 0  # of states
        self._keys = tuple(Field("key", key.type) for key in aggregation.keys)
        plain = [Field(key.name, value_type(key.type)) for key in self._keys]
        calls = aggregation.calls
        arguments: dict[Argument, list[int]] = {}
        for i in self._counted:
            arguments.setdefault(_argument(calls[i]), []).append(i)
        self._members = list(arguments.values())
        self._stack = ExitStack()
        shares_asked = (*_STEPS, *(1 for _ in arguments))
        division = Division(memory, sum(shares_asked))
        shares = [self._stack.enter_context(division.reservation(count)) for count in shares_asked]
        self._others, self._sorting, self._groups, self._modes, self._answers = shares[: len(_STEPS)]
        self._light = GroupStates(context, aggregation, self._others, profile, level)
        self._stack.callback(self._light.close)
        self._counts = [
            ValueCounts(context, plain, [calls[i] for i in members], share, profile)
            for members, share in zip(self._members, shares[len(_STEPS) :], strict=True)
        ]
        for counts in self._counts:
            self._stack.callback(counts.close)

    def add(self, states: Iterable[GroupState]) -> None:
        """Take states, in the rows' order.

        Raises:
            MemoryLimitError: aggregates of which values are not counted need more than the limit.
            StorageError: the folder has no room for what does not fit.
        """
        most = GATHERED_ROWS * self._context.device.task_size
        length = min(max(int(_ROWS * self._context.memory.share), _LEAST_ROWS), most)

        def compute(task: Task) -> tuple[int, GroupState]:
            place, state, number, start = task
            if place < 0:
                return place, self._aggregation.drop_values(state, self._counted)
            values = self._aggregation.values(state, self._members[place][0], start, length)
            return place, self._counts[place].partial(values, number, start)

        with closing(ordered_map(self._context, compute, self._tasks(states, length))) as found:
            for place, state in found:
                (self._light if place < 0 else self._counts[place]).add(state)

    def frames(self) -> Generator[Frame, None, None]:
        """Keys, then the aggregates' values, a row a group; nothing is held any more afterwards.

        Raises:
            MemoryLimitError: as for `add`; or there are too many groups with much in each.
            ExecutionError: see `Aggregation.final`.
            StorageError: files cannot be written or read back.
        """
        combiner = GroupCombiner(self._keys, self._aggregation.calls)
        with (
            closing(self._combine_rows(combiner)) as rows,
            closing(combiner.combine(self._context, rows, self._answers, self._profile)) as groups,
        ):
            yield from groups

    def close(self) -> None:
        """Let go of files, and of memory."""
        self._stack.close()

    def _tasks(self, states: Iterable[GroupState], length: int) -> Iterator[Task]:
        for state in states:
            self._numbers += 1
            yield -1, state, self._numbers, 0
            for place, members in enumerate(self._members):
                for start in range(0, self._aggregation.value_count(state, members[0]), length):
                    yield place, state, self._numbers, start

    def _combine_rows(self, combiner: GroupCombiner) -> Generator[Frame, None, None]:
        """Rows for the combiner: every key with what is no count, then with each of the others."""
        device = self._context.device
        light = [i for i in range(len(self._aggregation.calls)) if i not in self._counted]
        places = [len(self._keys) + i for i in light]
        groups = 0
        with closing(self._light.frames()) as frames:
            for frame in frames:
                groups += device.row_count(frame)
                yield device.evaluate(combiner.make_row(light, places), frame)
        for counts in self._counts[1:]:
            counts.release_memory()
        for members, counts in zip(self._members, self._counts, strict=True):
            with closing(counts.answers(groups, self._sorting, self._groups, self._modes)) as answers:
                for call, frame in answers:
                    found = device.evaluate(self._values_as_rows(members[call]), frame)
                    yield device.evaluate(combiner.make_row([members[call]]), found)

    def _values_as_rows(self, call: int) -> list[Expression]:
        """Keys and a call's values, which have no dictionaries, as the aggregation gives them."""
        fields = [*self._keys, Field("value", self._aggregation.calls[call].type)]
        columns = [ColumnRef(i, field.name, value_type(field.type)) for i, field in enumerate(fields)]
        return [
            column if column.type == field.type else Cast(column, field.type)
            for column, field in zip(columns, fields, strict=True)
        ]


def _argument(call: AggregateCall) -> Argument:
    return call.arguments, call.filter, call.order
