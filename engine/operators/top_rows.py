"""ORDER BY with LIMIT: the first rows in an order."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Generic

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Device, Frame
from bamquery.engine.memory import Reservation
from bamquery.engine.operators.framing import GATHERED_ROWS, gathered, sliced
from bamquery.engine.operators.operator import Operator
from bamquery.engine.parallel import ordered_map
from bamquery.engine.profile import OperatorProfile
from bamquery.plan.nodes import SortKey


class TopRows(Operator[Frame], Generic[Frame]):
    """The first `count` of the child's rows in stable order, after `offset`; holds little more than those."""

    def __init__(self, child: Operator[Frame], keys: Sequence[SortKey], count: int, offset: int) -> None:
        details = {"keys": len(keys), "count": count, "offset": offset}
        super().__init__(child.fields, (child,), OperatorProfile("Top rows", details))
        self._keys = tuple(keys)
        self._count = count
        self._offset = offset

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The rows, once all have come."""
        device = context.device
        if not self._count:
            return
        wanted = self._count + self._offset
        with context.memory.reservation("ORDER BY ... LIMIT") as memory:
            with (
                closing(self.children[0].frames(context)) as frames,
                closing(gathered(device, frames)) as chunks,
                closing(
                    ordered_map(context, lambda chunk: device.sort(chunk, self._keys, wanted), chunks)
                ) as candidates,
            ):
                best = self._best(device, candidates, wanted, memory)
            self.profile.details["peak_memory"] = memory.peak
            yield from sliced(device, device.slice(best, self._offset, self._count))

    def _best(
        self, device: Device[Frame], candidates: Iterable[Frame], wanted: int, memory: Reservation
    ) -> Frame:
        """The first rows of all candidates, reduced whenever as many wait as are wanted."""
        held: list[Frame] = [device.empty(self.fields)]
        rows = size = 0
        for candidate in candidates:
            held.append(candidate)
            rows += device.row_count(candidate)
            size += device.nbytes(candidate)
            memory.resize(size)
            if rows >= wanted + max(wanted, GATHERED_ROWS):
                held = [device.sort(device.concatenate(held), self._keys, wanted)]
                rows, size = device.row_count(held[0]), device.nbytes(held[0])
        return device.sort(device.concatenate(held), self._keys, wanted)
