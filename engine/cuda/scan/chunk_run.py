"""One chunk from its first step to its columns: the GPU's `operators.scan.chunk_selection`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pylibcudf as plc
from numpy.typing import NDArray

from bamquery.engine.cuda.cache.late_columns import Held, column_of
from bamquery.engine.cuda.frames import CudaFrame, CudaPositions, make_frame
from bamquery.engine.cuda.scan.chunk.row_selection import (
    PassedRows,
    Selection,
    count_groups,
    filter_column,
    narrow,
    narrow_by_places,
    select,
    select_all,
)
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn, DeviceStrings, PlacesColumn
from bamquery.engine.cuda.scan.columns.libcudf_rows import take_rows
from bamquery.engine.cuda.scan.columns.scan_column import Form
from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate
from bamquery.engine.cuda.scan.loading_chunk import LoadingChunk
from bamquery.engine.cuda.scan.reads.accounting import note_failures, settle
from bamquery.engine.cuda.scan.reads.column_reads import ReadColumn
from bamquery.engine.cuda.scan.reads.dictionary_conditions import asks_values, matching_rows
from bamquery.engine.cuda.scan.reads.gather_rows import take
from bamquery.engine.cuda.scan.reads.read_plan import every_row, learn, plan_columns
from bamquery.engine.cuda.scan.reads.string_reads import WaitingStrings
from bamquery.engine.cuda.scan.scan_state import ScanState
from bamquery.engine.device import Positions
from bamquery.engine.operators.scan.filter_order import FilterStep, combine_steps
from bamquery.storage.read_planner.hit_pyramid import LEVELS, HitPyramid
from bamquery.storage.read_planner.planner import total_seconds

_STEP_S: Final = 1.5e-3
"""What a step costs the host, about: columns to be planned, counts to be waited for, rows to be picked."""
Loaded: TypeAlias = "ReadColumn | DeviceStrings | plc.Column"
"""A column of the rows that are alive."""


class ChunkRun:
    """A chunk that is in work; one thread uses it."""

    def __init__(self, state: ScanState, loading: LoadingChunk) -> None:
        assert loading.memory is not None
        assert loading.loads is not None
        self._state = state
        self._loading = loading
        self._chunk = loading.memory
        self._loads = loading.loads
        self._selection: Selection | None = None
        self._wanted: NDArray[np.bool_] | None = None
        """Vectors of the pieces that have selected rows, as far as the host knows; None: all."""
        self._held: dict[int, Loaded] = {}
        self._alive = self._chunk.rows.rows
        self._counted: HitPyramid | None = None
        """How the rows lie that are alive; None: they are all."""
        self._filtered = False

    def run(self) -> bool:
        """Go through all steps, waiting for each one's count, and start to fetch what is given out.

        Returns:
            Whether a row passed.
        """
        plan = self._state.work.plan
        first = self._loading.first
        waiting = [step for step in plan.steps if step is first or plan.order.is_worth(step)]
        for column, staged in self._loading.staged.items():
            if staged.offsets is not None:
                self._loads.check(self._state.columns[column].name, staged, self._state.stream)
        step = first
        while step is not None:
            self._prepare(step)
            for ready in [s for s in waiting if s is step or (not s.can_fail and self._covers(s))]:
                waiting.remove(ready)
                if self._alive:
                    self._apply(ready, set(plan.outputs).union(*(s.columns for s in waiting)))
            if not self._alive:
                return False
            together = self._choose_together(waiting)
            if together:
                waiting = [s for s in waiting if s not in together]
                self._apply_together(together, set(plan.outputs).union(*(s.columns for s in waiting)))
                if not self._alive:
                    return False
            step = plan.order.choose_next(waiting, self._cost) if waiting else None
        self._load_columns(plan.outputs)
        return True

    def copy_back(self) -> Any:
        """Let the counters come back; returns the event behind all that was started."""
        self._chunk.board.copy_back()
        return self._state.event(self._state.stream)

    def finish(self) -> CudaFrame | None:
        """The chunk's part of the answer, once `copy_back` is done; None where no row passed.

        Raises:
            NvmeError: a command failed.
            GpuError: a kernel did not do all it should.
        """
        self._raise_failure()
        state = self._state
        settle(
            state.work.profile,
            lambda: state.queue_profile,
            self._chunk,
            self._loads.reads,
            self._loads.kernels,
        )
        learn(self._chunk, self._loads.planned, self._loads.reads, self._loads.kernels)
        if not self._alive:
            return None
        outputs = state.work.plan.outputs
        if not outputs:
            return CudaFrame((), self._alive)
        return make_frame([self._finish_column(column) for column in outputs], self._alive)

    def _prepare(self, step: FilterStep) -> None:
        """Have in memory what the step looks at."""
        fused = isinstance(self._state.fused[step.number], FusedPredicate)
        if fused and self._selection is None and step.columns[0] in self._loading.staged:
            self._count_whole(step.columns)
            return
        self._load_columns(step.columns)

    @property
    def _hits(self) -> HitPyramid:
        return every_row(self._chunk.rows) if self._counted is None else self._counted

    def _covers(self, step: FilterStep) -> bool:
        return all(column in self._held for column in step.columns)

    def _cost(self, step: FilterStep) -> float:
        """Seconds to read what the step still needs, for the rows that are alive."""
        columns = [self._state.columns[c] for c in step.columns if c not in self._held]
        return total_seconds(plan_columns(self._chunk, columns, self._hits), self._state.model)

    def _choose_together(self, waiting: Sequence[FilterStep]) -> list[FilterStep]:
        """Steps that one kernel computes, if what they save each other to read costs less than steps do.

        None where there are not several.
        """
        steps = [step for step in waiting if not step.can_fail and self._is_selectable(step)]
        if len(steps) < 2:
            return []
        unread = {c: self._state.columns[c] for step in steps for c in step.columns if c not in self._held}
        choices = plan_columns(self._chunk, list(unread.values()), self._hits)
        seconds = total_seconds(choices, self._state.model)
        return steps if seconds <= _STEP_S * (len(steps) - 1) else []

    def _is_selectable(self, step: FilterStep) -> bool:
        def has_dictionary(place: int) -> bool:
            column = self._chunk.stored_column(self._state.columns[step.columns[place]])
            return column.form is Form.DICTIONARY and self._state.dictionaries.join_all(column) is not None

        return self._state.selects(step.predicate, has_dictionary)

    def _count_whole(self, columns: Iterable[int]) -> None:
        if self._filtered:
            return
        for column in columns:
            reads, name = self._state.work.reads, self._state.columns[column].name
            reads.count_whole_pieces(self._loading.chunk.pieces, name)

    def _load_columns(self, columns: Sequence[int]) -> None:
        """Have those columns in memory for the rows that are alive."""
        missing = [column for column in dict.fromkeys(columns) if column not in self._held]
        self._count_whole(missing)
        if self._selection is None and missing:
            self._selection = select_all(self._chunk)
        late = []
        for column in missing:
            assert self._selection is not None
            found = self._state.columns[column]
            staged = self._loading.staged.get(column)
            if staged is not None:
                self._held[column] = self._loads.gather_staged(found, staged, self._selection)
            elif not self._filtered:
                one = self._loads.stage(found, self._state.stream)
                self._loads.check(found.name, one, self._state.stream)
                self._held[column] = self._loads.gather_staged(found, one, self._selection)
            else:
                late.append(column)
        if late:
            assert self._selection is not None
            names = [self._state.columns[column] for column in late]
            self._held |= zip(
                late, self._loads.read(names, self._selection, self._hits, self._wanted), strict=True
            )
        self._complete()

    def _complete(self) -> None:
        """Read the bytes of strings, once it is known how many they are: each wait is one for all columns."""
        while waiting := {
            column: held for column, held in self._held.items() if isinstance(held, WaitingStrings)
        }:
            self._wait()
            self._held |= zip(waiting, self._loads.complete(list(waiting.values())), strict=True)

    def _apply_together(self, steps: Sequence[FilterStep], wanted: set[int]) -> None:
        """As `_apply`, of several that `_choose_together` gave."""
        columns = tuple(dict.fromkeys(column for step in steps for column in step.columns))
        self._load_columns(columns)
        self._wait()
        frame = make_frame([self._finish_column(column) for column in columns], self._alive)
        condition = combine_steps(steps, columns, self._state.work.plan.schema)
        passed = self._state.device.matching_positions(condition, frame)
        self._keep_columns(self._keep_passed(passed, counts=not wanted <= self._held.keys()), wanted)

    def _apply(self, step: FilterStep, wanted: set[int]) -> None:
        """Keep the rows that pass; of the columns, those that are `wanted` from here on."""
        before = self._alive
        fused = self._state.fused[step.number]
        places: tuple[int, int] | None = None
        if not isinstance(fused, FusedPredicate):
            places = self._match(step, counts=not wanted <= self._held.keys())
        elif self._selection is None:
            self._select(step, fused)
        else:
            column = self._held[step.columns[0]]
            assert isinstance(column, DeviceColumn)
            assert self._selection is not None
            places = self._narrow(filter_column(self._chunk, fused, column, self._selection))
        self._state.work.plan.order.learn(step, before, self._alive)
        self._keep_columns(places, wanted)

    def _keep_columns(self, places: tuple[int, int] | None, wanted: set[int]) -> None:
        """Of columns those that are wanted, and of these the rows that passed; None: all did."""
        self._filtered = True
        self._held = {column: held for column, held in self._held.items() if column in wanted}
        if places is not None and self._alive:
            self._held = {column: self._take_rows(held, *places) for column, held in self._held.items()}
        staged = [c for c in self._loading.staged if c in wanted and c not in self._held]
        if self._alive and staged:
            self._load_columns(staged)
        for dropped in self._loading.staged.values():
            self._loads.drop(dropped)
        self._loading.staged.clear()

    def _select(self, step: FilterStep, fused: FusedPredicate) -> None:
        passed = self._loading.passed
        if passed is not None and step is self._loading.first:
            self._state.wait(self._loading.looked)
            self._raise_failure()
        else:
            staged = self._loading.staged[step.columns[0]]
            passed = self._loads.start_filter(fused, staged, self._state.stream)
            self._wait()
        board = self._chunk.board
        self._alive = board.word(passed.total)
        if not self._alive:
            return
        self._counted = passed.pyramid(board)
        assert passed.of_pieces is not None
        firsts = self._chunk.rows.firsts
        counts = np.diff(board.words(passed.of_pieces, len(firsts)).astype(np.int64))
        if not counts.all():
            self._wanted = np.repeat(counts > 0, np.diff(firsts).astype(np.int64))
        self._selection = select(self._chunk, passed, self._alive)

    def _narrow(self, passed: PassedRows) -> tuple[int, int] | None:
        """The places of the rows that passed, and how many; None where all did."""
        self._wait()
        rows = self._chunk.board.word(passed.total)
        if rows == self._alive:
            return None
        self._alive = rows
        if not rows:
            return None
        self._counted = passed.pyramid(self._chunk.board)
        assert self._selection is not None
        self._selection, places = narrow(self._chunk, self._selection, passed, rows)
        return places.ptr, rows

    def _match(self, step: FilterStep, *, counts: bool) -> tuple[int, int] | None:
        """As `_narrow`, for a condition that libcudf computes.

        `counts`: more is to be read for the rows that pass, and so it matters how they lie.
        """
        self._wait()
        first = self._held[step.columns[0]] if len(step.columns) == 1 else None
        passed: Positions
        if isinstance(first, PlacesColumn) and asks_values(step, first):
            passed = matching_rows(self._state, step, first)
        else:
            frame = make_frame([self._finish_column(column) for column in step.columns], self._alive)
            passed = self._state.device.matching_positions(step.predicate, frame)
        return self._keep_passed(passed, counts=counts)

    def _keep_passed(self, passed: Positions, *, counts: bool) -> tuple[int, int] | None:
        """As `_match`, of rows at positions."""
        if len(passed) == self._alive:
            return None
        self._alive = len(passed)
        if not len(passed):
            return None
        assert self._selection is not None
        assert isinstance(passed, CudaPositions)
        self._selection, places = narrow_by_places(self._chunk, self._selection, passed)
        if counts:
            groups = count_groups(self._chunk, self._selection)
            self._wait()
            counted = self._chunk.board.words(groups, LEVELS - 1).tolist()
            self._counted = HitPyramid.from_counts(self._alive, counted)
        return places, self._alive

    def _take_rows(self, held: Loaded, places: int, rows: int) -> Loaded:
        if isinstance(held, DeviceColumn):
            return take(self._chunk, held, places, rows)
        return take_rows(self._state.session, column_of(self._column(held)), places, rows)

    def _finish_column(self, column: int) -> Held:
        return self._column(self._held[column])

    def _column(self, held: Loaded) -> Held:
        assert not isinstance(held, WaitingStrings)
        if isinstance(held, (DeviceColumn, DeviceStrings)):
            return held.finish(self._chunk.board)
        return held

    def _wait(self) -> None:
        """Until all that was started has ended."""
        event = self.copy_back()
        try:
            self._state.wait(event)
        finally:
            self._state.forget(event)
        self._raise_failure()

    def _note_failures(self, count: int) -> None:
        state = self._state
        note_failures(state.work.profile, lambda: state.queue_profile, count)

    def _raise_failure(self) -> None:
        board = self._chunk.board
        error = board.error(board.load_errors)
        if error is not None:
            self._note_failures(error[0])
            raise self._state.load_rings.failure(*error)
        error = board.error(board.fetch_errors)
        if error is not None:
            self._note_failures(error[0])
            raise self._state.fetch_rings.failure(*error)
        for check in self._loads.checks:
            check.settle(self._chunk)
