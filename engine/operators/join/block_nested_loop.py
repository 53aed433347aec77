"""Joins whose build rows no key can split: by blocks of them, for each of which the probe side is read."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Final, Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.execution.spill_files import SpillFile
from bamquery.engine.operators.base.bounded_copies import CopiedRows, portions_within
from bamquery.engine.operators.base.frame_sizing import coalesce_frames, slice_frame
from bamquery.engine.operators.join.build_side import collect_blocks, make_build_side
from bamquery.engine.operators.join.device_join import several_rows_error
from bamquery.engine.operators.join.pairs import JoinPairFinder, Pairs, null_columns, truth_column
from bamquery.engine.operators.join.strategy import JoinTask, ProbeRows

Flags = NDArray[np.bool_]

_AT_ONCE: Final = 4
"""Portions of a chunk's pairs that a thread makes ahead."""


class BlockNestedLoopJoin(Generic[Frame]):
    """A `JoinStrategy` that needs no keys: both sides are in files, and read from there."""

    def __init__(self, task: JoinTask[Frame]) -> None:
        self._task = task

    def join(self, probe: ProbeRows[Frame], build: Iterable[Frame]) -> Generator[Frame, None, None]:
        """See `JoinStrategy`."""
        task, context = self._task, self._task.context
        device, folder = context.device, context.spill_folder
        assert folder is not None
        with (
            SpillFile(device, folder, task.probe_fields, task.profile) as probe_rows,
            SpillFile(device, folder, task.build_fields, task.profile) as build_rows,
        ):
            # The build side first: the other one's operators may hold something, too, until they are done.
            for frame in build:
                context.check_cancelled()
                build_rows.write(frame)
            task.require_single(build_rows.rows)
            task.memory.resize(0)
            with closing(probe()) as frames:
                for frame in frames:
                    context.check_cancelled()
                    probe_rows.write(frame)
            task.add_figure("build_rows", build_rows.rows)
            loop = _BlockLoop(task.partition(task.level), probe_rows)
            with closing(build_rows.frames()) as rows, closing(coalesce_frames(context, rows)) as chunks:
                yield from loop.join(chunks)
            task.add_figure("blocks", loop.blocks)
            task.profile.details["peak_memory"] = task.memory.peak


class _BlockLoop(Generic[Frame]):
    """Blocks of build rows, each with all probe rows.

    Which probe rows have been matched is noted over all blocks, a byte or two for each row; what becomes of
    them by that is said in the end.

    Args:
        probed: the probe side, all of it written.

    Attributes:
        blocks: how many there have been.
    """

    def __init__(self, task: JoinTask[Frame], probed: SpillFile[Frame]) -> None:
        self._task = task
        self._context = task.context
        self._device: Device[Frame] = task.context.device
        self._kind = task.kind
        self._probed = probed
        self._nothing = task.context.device.empty(task.build_fields)
        self._matched: Flags = np.zeros(probed.rows, np.bool_)
        self._undecided: Flags = np.zeros(probed.rows if task.kind == "mark" else 0, np.bool_)
        self._gives_pairs = task.kind not in ("semi", "anti", "mark")
        self.blocks = 0

    def join(self, build: Iterable[Frame]) -> Generator[Frame, None, None]:
        """The rows.

        Raises:
            ExecutionError: a key or condition cannot be computed, or a single row has several partners.
            MemoryLimitError: not even notes and one build row fit.
        """
        notes = self._matched.nbytes + self._undecided.nbytes
        self._task.memory.resize(notes)
        for block in collect_blocks(self._device, build, self._task.memory, beside=notes):
            self.blocks += 1
            block.insert(0, self._nothing)
            yield from self._pairs(block)
        if self._kind not in ("inner", "right"):
            yield from self._rows_by_matches()

    def _pairs(self, block: list[Frame]) -> Generator[Frame, None, None]:
        device, kind, portion = self._device, self._kind, self._context.string_limits.piece
        condition, memory = self._task.condition, self._task.memory
        no_pairs = kind != "mark" and condition.is_never_true
        before = memory.held
        side = make_build_side(self._context, block, condition, memory, no_pairs=no_pairs)
        memory.fits(before)  # until the next block is there
        block.clear()
        found = np.zeros(side.rows, np.bool_)
        finder = JoinPairFinder(
            self._context,
            side.table,
            side.frame,
            condition,
            len(self._task.probe_fields),
            wants_undecided=kind == "mark",
        )

        copies = CopiedRows(device, side.frame) if self._gives_pairs else None

        def answers(start: int, frame: Frame) -> Iterator[Frame]:
            probed = None if copies is None else CopiedRows(device, frame)
            for pairs in finder.pairs(frame):
                self._note(start, pairs)
                if copies is None:
                    continue
                assert probed is not None
                found[pairs.build_positions] = True
                for some in portions_within(
                    [(probed, pairs.probe_positions), (copies, pairs.build_positions)], portion
                ):
                    self._context.check_cancelled()
                    sides = [device.take(frame, pairs.probe_positions[some])]
                    sides.append(device.take(side.frame, pairs.build_positions[some]))
                    yield device.join_columns(sides)

        def start_frame(item: tuple[int, Frame]) -> Iterator[Frame]:
            made = answers(*item)
            return chain(list(islice(made, _AT_ONCE)), made)

        with (
            closing(self._number_rows()) as frames,
            closing(ordered_map(self._context, start_frame, frames)) as made,
        ):
            for answer in made:
                yield from filter(device.row_count, answer)
        if kind in ("right", "full"):
            nothing = device.empty(self._task.probe_fields)
            unmatched = device.take(side.frame, np.flatnonzero(~found))
            for frame in filter(device.row_count, slice_frame(device, unmatched, portion)):
                yield device.join_columns([null_columns(device, nothing, device.row_count(frame)), frame])

    def _note(self, start: int, pairs: Pairs) -> None:
        places = start + pairs.probe_positions
        if self._kind == "single" and ((np.diff(places) == 0).any() or self._matched[places].any()):
            raise several_rows_error()
        self._matched[places] = True
        if pairs.undecided is not None:
            self._undecided[start + pairs.undecided] = True

    def _number_rows(self) -> Generator[tuple[int, Frame], None, None]:
        """The left side, each frame with the number of its first row."""
        start = 0
        with (
            closing(self._probed.frames()) as frames,
            closing(coalesce_frames(self._context, frames)) as chunks,
        ):
            for frame in chunks:
                self._context.check_cancelled()
                yield start, frame
                start += self._device.row_count(frame)

    def _rows_by_matches(self) -> Generator[Frame, None, None]:
        """What becomes of the left side's rows by whether they have found partners."""
        device = self._device
        with closing(self._number_rows()) as frames:
            for start, frame in frames:
                matched = self._matched[start : start + device.row_count(frame)]
                if self._kind == "mark":
                    undecided = self._undecided[start : start + len(matched)]
                    yield device.join_columns([frame, truth_column(device, matched, undecided & ~matched)])
                    continue
                chosen = device.take(frame, np.flatnonzero(matched == (self._kind == "semi")))
                if self._gives_pairs:
                    nulls = null_columns(device, self._nothing, device.row_count(chosen))
                    chosen = device.join_columns([chosen, nulls])
                yield chosen
