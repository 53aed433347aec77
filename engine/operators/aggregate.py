"""GROUP BY and aggregates."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Generic

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Frame
from bamquery.engine.operators.framing import gathered, sliced
from bamquery.engine.operators.group_states import GroupStates
from bamquery.engine.operators.operator import Operator
from bamquery.engine.parallel import ordered_map
from bamquery.engine.profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, Expression
from bamquery.plan.nodes import Field


class Aggregate(Operator[Frame], Generic[Frame]):
    """One row a group: the keys, then the aggregates. Without keys one row, also of no rows.

    Chunks become partial states on all threads; states are merged in the rows' order, so `first` and
    `last` follow it, and groups come out in the order in which they first appear.
    """

    def __init__(
        self,
        child: Operator[Frame],
        keys: Sequence[Expression],
        aggregates: Sequence[AggregateCall],
        fields: tuple[Field, ...],
    ) -> None:
        names = [field.name for field in fields]
        details = {"keys": names[: len(keys)], "aggregates": names[len(keys) :]}
        super().__init__(fields, (child,), OperatorProfile("Aggregate", details))
        self._keys = tuple(keys)
        self._aggregates = tuple(aggregates)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The groups, once all rows have come."""
        device = context.device
        aggregation = device.aggregation(self._keys, self._aggregates)
        with context.memory.reservation("GROUP BY" if self._keys else "an aggregate") as memory:
            states: GroupStates[Frame] = GroupStates(aggregation, memory)
            states.add(aggregation.partial(device.empty(self.children[0].fields)))
            with (
                closing(self.children[0].frames(context)) as frames,
                closing(gathered(device, frames)) as chunks,
                closing(ordered_map(context, aggregation.partial, chunks)) as partials,
            ):
                for state in partials:
                    states.add(state)
            frame = aggregation.final(states.merged())
            memory.resize(memory.held + device.nbytes(frame))
            self.profile.details["peak_memory"] = memory.peak
            yield from sliced(device, frame)
