"""GROUP BY and aggregates."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate.group_states import group_rows
from bamquery.engine.operators.aggregate.holistic_states import HolisticStates
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.frame_sizing import slice_frame
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.project import Project
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, Expression, referenced_columns
from bamquery.plan.nodes import Field
from bamquery.plan.rewriting import substitute

if TYPE_CHECKING:
    from bamquery.engine.compiling_device import AggregatingDevice, CompilingDevice


class Aggregate(Operator[Frame], Generic[Frame]):
    """One row a group: the keys, then the aggregates. Without keys one row, also of no rows.

    Chunks become partial states on all threads; states are merged in the rows' order, so `first` and
    `last` follow it. Groups come out in the order in which they first appear, unless they are very many.
    """

    reservations = 1
    runs_again = True

    def __init__(
        self,
        child: Operator[Frame],
        keys: Sequence[Expression],
        aggregates: Sequence[AggregateCall],
        fields: tuple[Field, ...],
    ) -> None:
        super().__init__(fields, (child,), OperatorProfile("Aggregate", group_details(len(keys), fields)))
        self._keys = tuple(keys)
        self._aggregates = tuple(aggregates)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The groups, once all rows have come."""
        device = context.device
        known = None if self._keys else self.children[0].known_aggregates(self._aggregates)
        if known is not None:
            self.profile.details["answered by"] = "zone maps"
            yield device.from_arrow(known)
            return
        child, keys, aggregates = self._gathered_from(device)
        aggregation = device.aggregation(keys, aggregates)
        nothing = device.empty(child.fields)
        with (
            context.memory.reservation(grouping_name(self._keys, self._aggregates)) as memory,
            closing(child.frames(context)) as rows,
            closing(
                group_rows(
                    context,
                    rows,
                    nothing,
                    aggregation,
                    memory=memory,
                    profile=self.profile,
                    kind=HolisticStates,
                )
            ) as groups,
        ):
            for frame in groups:
                self.profile.details["peak_memory"] = memory.peak
                if aggregation.program is not None:
                    self.profile.details["program"] = aggregation.program
                yield from slice_frame(device, frame)

    def start_compiling(self, device: CompilingDevice) -> None:
        """Its aggregates."""
        child, _, aggregates = self._gathered_from(device)
        device.start_compiling_aggregates(aggregates, child.nullable_fields(), by_keys=bool(self._keys))

    def _gathered_from(
        self, device: AggregatingDevice
    ) -> tuple[Operator[Frame], tuple[Expression, ...], tuple[AggregateCall, ...]]:
        """Where rows come from, and keys and calls over them: with what would be computed before, perhaps."""
        child = self.children[0]
        if isinstance(child, Project):
            together = child.compute_within(self._keys, self._aggregates, device.gathers_in_one_pass)
            if together is not None:
                return together
        return child, self._keys, self._aggregates

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """A condition on keys leaves out whole groups; without keys there is a row in any case."""
        return push_filter_to_groups(self.children[0], self._keys, value, dynamic_filter)


def push_filter_to_groups(
    child: Operator[Any], keys: Sequence[Expression], value: Expression, dynamic_filter: DynamicFilter
) -> bool:
    """See `Operator.push_dynamic_filter`, where keys come first, then what depends on a group's rows."""
    read = referenced_columns(value)
    if not read or any(index >= len(keys) for index in read):
        return False
    return child.push_dynamic_filter(substitute(value, keys), dynamic_filter)


def grouping_name(keys: Sequence[object], calls: Sequence[AggregateCall]) -> str:
    """What errors call that which asks for memory: joined strings are what a group is too large by."""
    joined = any(call.function == "string_agg" for call in calls)
    if keys:
        return "GROUP BY with string_agg()" if joined else "GROUP BY"
    return "string_agg()" if joined else "an aggregate"


def group_details(keys: int, fields: Sequence[Field]) -> dict[str, object]:
    """What a profile says of an aggregate."""
    names = [field.name for field in fields]
    return {"keys": names[:keys], "aggregates": names[keys:]}
