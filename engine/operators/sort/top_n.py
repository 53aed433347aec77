"""ORDER BY with LIMIT: the first rows in an order."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Final, Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.ordered_map import are_small_frames, ordered_map
from bamquery.engine.operators.base.frame_sizing import (
    GATHERED_ROWS,
    drain_list,
    gather_frames,
    limit_rows,
    slice_frame,
)
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.sort.external_sort import sort_rows
from bamquery.engine.operators.sort.top_n_threshold import TopNThreshold
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.nodes import SortKey

_MOST_ROWS: Final = (1 << 63) - 1
_COPIES: Final = 3
"""Times that rows are in memory: as they came, joined, in order."""


class TopN(Operator[Frame], Generic[Frame]):
    """The first `count` of the child's rows, after `offset`; holds little more than those.

    Of rows with equal keys, those that come first stay first. More than fit `memory_limit` are
    sorted by files.
    """

    reservations = 1
    runs_again = True

    def __init__(self, child: Operator[Frame], keys: Sequence[SortKey], count: int, offset: int) -> None:
        details = {"keys": len(keys), "count": count, "offset": offset}
        super().__init__(child.fields, (child,), OperatorProfile("Top rows", details))
        self._keys = tuple(keys)
        self._count = count
        self._offset = offset
        self._wanted = min(count + offset, _MOST_ROWS)
        self._threshold: TopNThreshold[Frame] | None = None
        child.take_all_rows()

    def filter_child(self) -> None:
        """Let a scan below leave out what comes after the rows that are wanted. Called before it runs."""
        threshold: TopNThreshold[Frame] = TopNThreshold(self._keys[0], self._wanted)
        if self._count and threshold.is_used(self.children[0]):
            self._threshold = threshold
            self.runs_again = False  # it is told anew of each run's rows

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The rows, once all have come."""
        device = context.device
        if not self._count:
            return
        wanted = self._wanted
        if self._threshold is not None:
            self._threshold.start(self.children[0])
        with (
            context.memory.reservation("ORDER BY ... LIMIT") as memory,
            closing(self.children[0].frames(context)) as frames,
            closing(self._candidates(context, frames, wanted)) as candidates,
        ):
            held, all_came = self._best_rows(context, candidates, wanted, memory)
            self.profile.details["peak_memory"] = memory.peak
            if all_came:
                # One candidate is in order already.
                best = (
                    held[0] if len(held) == 1 else device.sort(device.concatenate(held), self._keys, wanted)
                )
                yield from slice_frame(device, device.slice(best, self._offset, self._count))
                return
            memory.resize(0)
            rest = filter(device.row_count, chain(drain_list(held), candidates))
            with closing(
                sort_rows(context, rest, self.fields, self._keys, memory=memory, profile=self.profile)
            ) as ordered:
                yield from limit_rows(device, ordered, self._count, self._offset)

    def _candidates(
        self, context: ExecutionContext[Frame], frames: Iterable[Frame], wanted: int
    ) -> Generator[Frame, None, None]:
        """The first rows of each chunk."""
        device = context.device

        def first_rows(chunk: Sequence[Frame]) -> Frame:
            return device.sort(device.concatenate(chunk), self._keys, wanted)

        if self._threshold is None:
            chunks = gather_frames(context, frames)
        else:
            # As frames come: what they tell is wanted soon, and before others are read at all.
            chunks = ([frame] for frame in frames if device.row_count(frame))
            for chunk in chunks:
                yield first_rows(chunk)
                if self._threshold.is_known:
                    break
        is_small = partial(are_small_frames, device)
        with (
            closing(chunks),
            closing(ordered_map(context, first_rows, chunks, is_small=is_small)) as candidates,
        ):
            yield from candidates

    def _best_rows(
        self,
        context: ExecutionContext[Frame],
        candidates: Iterable[Frame],
        wanted: int,
        memory: Reservation,
    ) -> tuple[list[Frame], bool]:
        """The first rows of candidates, reduced whenever as many wait as are wanted; whether all came.

        Otherwise they are the first rows of those that did, and do not fit in memory.
        """
        device = context.device
        held: list[Frame] = []
        rows = size = 0
        threshold = self._threshold
        # What is known of the last one that is wanted is known better after every few chunks.
        spare = wanted if threshold is not None else max(wanted, GATHERED_ROWS)
        for candidate in candidates:
            held.append(candidate)
            rows += device.row_count(candidate)
            size += device.nbytes(candidate)
            if not memory.fits(_COPIES * size):
                if context.spill_folder is None:
                    memory.resize(_COPIES * size)
                return held, False
            if rows >= (wanted + spare if threshold is None or threshold.is_known else wanted):
                if len(held) > 1:
                    held = [device.sort(device.concatenate(held), self._keys, wanted)]
                rows, size = device.row_count(held[0]), device.nbytes(held[0])
                if threshold is not None:
                    threshold.update(device, device.slice(held[0], wanted - 1, 1))
        return held or [device.empty(self.fields)], True
