"""The selective scan: filter columns are read first, all others only where rows have passed."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, Generic

import numpy as np
import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.base.dynamic_filter import DynamicCondition, DynamicFilter, column_under_casts
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.scan.chunk_selection import (
    ChunkReads,
    ChunkSelection,
    SelectionPlan,
    rows_without_columns,
)
from bamquery.engine.operators.scan.chunks import GIVEN_VECTORS, Chunk, ChunkLimits, cut_chunks
from bamquery.engine.operators.scan.column_reads import ColumnReads
from bamquery.engine.operators.scan.device_scan import ScanningDevice, ScanWork, scans_itself
from bamquery.engine.operators.scan.dynamic_filters import (
    NOT_FOLLOWED,
    MovingDynamicFilters,
    ScanDynamicFilter,
    dynamic_conjuncts,
    mark_as_filters,
)
from bamquery.engine.operators.scan.filter_order import (
    AdaptiveFilterOrder,
    FilterStep,
    filter_steps,
    optional_steps,
)
from bamquery.engine.operators.scan.forecast import ColumnForecast, ScanForecast
from bamquery.engine.operators.scan.open_fragments import FragmentReaders
from bamquery.engine.operators.scan.row_numbers import RowNumbers
from bamquery.engine.operators.scan.selectivity_guess import guess_selectivities
from bamquery.engine.operators.scan.zone_map_answers import zone_map_answers
from bamquery.engine.operators.scan.zone_map_bounds import best_first, zone_map_bound
from bamquery.engine.profiling.scan_profile import ColumnProfile, ScanProfile
from bamquery.engine.profiling.vector_map import FragmentVectors, VectorMap
from bamquery.engine.settings import Settings
from bamquery.engine.sources.scan_predicates import implied_conjuncts, split_conjuncts
from bamquery.engine.sources.scan_sources import NumberedTable, StoredTable
from bamquery.errors import CancelledError
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression, SortKey
from bamquery.plan.format import expression_text
from bamquery.plan.nodes import Scan
from bamquery.plan.rewriting import substitute

_ROWS_WITHOUT_COLUMNS: Final = 1 << 22
"""Rows of a frame without columns: few frames for count(*), little memory where a constant is computed."""


_SMALL_CHUNK: Final = 65_536
"""Rows of a chunk below which most of its work is Python's, of which threads do no two at once."""
_NULLS: Final = f"{__name__}.nulls"


class StoredScan(Operator[Frame], Generic[Frame]):
    """Reads a version of a stored table, chunk by chunk, on all threads; frames come in row order."""

    def __init__(self, scan: Scan, table: StoredTable, settings: Settings) -> None:
        self._snapshot = table.snapshot
        self._settings = settings
        self._outputs = scan.columns
        self._schema = table.schema
        self._conjuncts = split_conjuncts(scan.predicates, self._schema)
        self._numbers = RowNumbers(table) if isinstance(table, NumberedTable) else None
        if self._numbers is not None:
            self._conjuncts = self._numbers.answer(self._conjuncts)
        self._ranges = [found for conjunct in self._conjuncts for found in conjunct.ranges]
        steps = filter_steps(self._conjuncts)
        self._steps = [step for step in steps if step.columns]
        self._constants = [step for step in steps if not step.columns]
        self._dynamic_filters: list[ScanDynamicFilter] = []
        self._preferred: tuple[str, bool] | None = None
        self._keeps_encoded = False
        self._is_taken_whole = False
        self._scan_profile = _make_profile(scan, table, settings, self._steps)
        super().__init__(scan.fields, (), self._scan_profile)

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """Taken where `value` is a column, or a cast of one."""
        column = column_under_casts(value)
        if column is None or (dynamic_filter.moves and self._is_number(column)):
            return False
        taken = ScanDynamicFilter(dynamic_filter, self._renumber_for_source(value), self._schema)
        self._dynamic_filters.append(taken)
        self._show_dynamic_filters()
        return True

    def top_n_bound(self, key: SortKey, count: int) -> DynamicCondition | None:
        """By zone maps, where all of the table's rows are given out."""
        column = column_under_casts(key.expression)
        whole = self._gives_all_rows and all(taken.dynamic_filter.moves for taken in self._dynamic_filters)
        if column is None or self._is_number(column) or not whole or not self._settings.zone_maps:
            return None
        name = self._schema.field(self._outputs[column.index]).name
        return zone_map_bound(self._snapshot.fragments, name, replace(key, expression=column), count)

    def known_aggregates(self, calls: Sequence[AggregateCall]) -> pa.RecordBatch | None:
        """By zone maps, where all of the table's rows are given out."""
        if not self._gives_all_rows or self._dynamic_filters or not self._settings.zone_maps:
            return None
        if self._numbers is not None and self._numbers.column in self._outputs:
            return None
        columns = [self._schema.field(place) for place in self._outputs]
        return zone_map_answers(self._snapshot.fragments, columns, calls)

    def nullable_fields(self) -> Sequence[bool | None]:
        """As the table's files say."""
        return self._nullable

    @functools.cached_property
    def _nullable(self) -> Sequence[bool]:
        return [self._has_nulls(place) for place in self._outputs]

    def _has_nulls(self, place: int) -> bool:
        if self._numbers is not None and place == self._numbers.column:
            return False
        name, facts = self._schema.field(place).name, self._snapshot.facts
        key = f"{_NULLS} {name}"
        found: bool | None = facts.get(key)
        if found is None:
            layouts = ((one.layout, one.column_index(name)) for one in self._snapshot.fragments)
            found = facts[key] = any(layout.columns[place].has_nulls for layout, place in layouts)
        return found

    def prefer_order(self, key: SortKey) -> None:
        """Chunk by chunk, where the table is about in that order."""
        column = column_under_casts(key.expression)
        if column is not None and not self._is_number(column):
            self._preferred = (self._schema.field(self._outputs[column.index]).name, key.descending)

    def keep_encoded(self) -> None:
        """Columns come as they are stored, where the device takes such."""
        self._keeps_encoded = True

    def take_all_rows(self) -> None:
        """No chunk need be small for the sake of who waits for its rows."""
        self._is_taken_whole = True

    @property
    def _gives_all_rows(self) -> bool:
        """Whether no condition of the query leaves out any."""
        return not self._conjuncts and not self._selects_numbers

    @property
    def _selects_numbers(self) -> bool:
        return self._numbers is not None and self._numbers.selects

    def _is_number(self, column: ColumnRef) -> bool:
        """Whether a column that is given out is the rows' number."""
        return self._numbers is not None and self._outputs[column.index] == self._numbers.column

    def _show_dynamic_filters(self) -> None:
        if self._dynamic_filters:
            with self._scan_profile.lock:
                self._scan_profile.details["dynamic_filters"] = [
                    taken.text for taken in self._dynamic_filters
                ]

    def _renumber_for_source(self, value: Expression) -> Expression:
        """An expression over the columns given out, over those of the source."""
        fields = self._schema
        columns = [ColumnRef(i, fields.field(i).name, fields.field(i).type) for i in self._outputs]
        return substitute(value, columns)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """One frame a chunk that has rows which pass."""
        self._take_dynamic_filters(context)
        implied = implied_conjuncts(self._conjuncts, self._schema)
        if implied and not scans_itself(context.device):
            self._steps += optional_steps(implied, len(self._steps))
        if self._constants:
            nothing = context.device.single_row()
            if not all(
                len(context.device.matching_positions(step.predicate, nothing)) for step in self._constants
            ):
                return
        if not self._outputs and not self._steps and not self._selects_numbers:
            with self._scan_profile.lock:
                self._scan_profile.rows_scanned = self._snapshot.rows
            for start in range(0, self._snapshot.rows, _ROWS_WITHOUT_COLUMNS):
                rows = min(self._snapshot.rows - start, _ROWS_WITHOUT_COLUMNS)
                yield context.device.from_arrow(rows_without_columns(rows))
            return
        self._scan_profile.fragments = self._snapshot.fragments
        yield from self._chunks(context)

    def _take_dynamic_filters(self, context: ExecutionContext[Frame]) -> None:
        """What others have learned by now: more to prune by, and rows that nobody wants."""
        if not self._dynamic_filters:
            return
        known = {
            c: None for dynamic_filter in self._dynamic_filters for c in dynamic_filter.conditions()
        }  # once, whoever has told it
        found = dynamic_conjuncts(known, self._schema, context.device)
        if self._numbers is not None:
            found = self._numbers.answer(found)
        self._ranges += [one for conjunct in found for one in conjunct.ranges]
        self._constants += [step for step in filter_steps(found) if not step.columns]
        self._steps += optional_steps(found, len(self._steps))
        self._show_dynamic_filters()
        with self._scan_profile.lock:
            mark_as_filters(self._scan_profile, self._schema, found)

    def forecast(self) -> ScanForecast:
        """What it is expected to do, by zone maps and guesses."""
        self._scan_profile.fragments = self._snapshot.fragments
        fragments = []
        for fragment in self._snapshot.fragments:
            everything = np.arange(fragment.vector_count, dtype=np.int64)
            pruned = self._settings.zone_maps and self._ranges
            left = fragment.zone_map.surviving_vectors(self._ranges) if pruned else everything
            left = left if self._numbers is None else self._numbers.keep_vectors(fragment, left)
            fragments.append((fragment, left))
        columns = [ColumnForecast(c.name, c.role) for c in self._scan_profile.columns.values()]
        order = AdaptiveFilterOrder(self._steps, guess_selectivities(self._steps, self._snapshot.fragments))
        found = ScanForecast(fragments, columns, order, self._settings)
        names, number = self._schema.names, self._numbers.column if self._numbers is not None else None
        told = [step for step in self._steps if number not in step.columns]
        found.run(told, names, [names[column] for column in self._outputs if column != number])
        return found

    def _chunks(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        fragments = self._snapshot.fragments
        stopped = threading.Event()

        def check() -> None:
            context.check_cancelled()
            if stopped.is_set():
                raise CancelledError("nobody wants the scan's rows any more")

        keeps = self._keeps_encoded and context.device.capabilities.takes_encoded
        readers: FragmentReaders[Frame] = FragmentReaders(
            context.settings, self._scan_profile, keeps_encoded=keeps
        )
        reads = ColumnReads(context, self._scan_profile, readers, check)
        # One step needs no order.
        sampled = fragments if len(self._steps) > 1 else ()
        moving = MovingDynamicFilters(self._dynamic_filters, context.device, len(self._steps))
        steps, later = self._steps, moving.guesses
        order = AdaptiveFilterOrder(
            [*steps, *moving.placeholders], lambda: guess_selectivities(steps, sampled) + later
        )
        plan = SelectionPlan(
            self._outputs, tuple(self._steps), self._schema, order, moving.steps, self._numbers
        )
        if scans_itself(context.device):
            names = list(self._scan_profile.columns)
            what = (plan, fragments, self._ranges, names, context, self._scan_profile, readers, reads, check)
            work = ScanWork(*what, self._is_taken_whole, self._snapshot.facts)
            yield from self._scan_on(context.device, work, stopped)
            return
        through = ChunkReads.of_scan(context, self._scan_profile, readers, reads)

        def read(chunk: Chunk) -> Frame | None:
            try:
                return ChunkSelection(plan, context, through, chunk).run()
            finally:
                readers.release(chunk)

        # Of what becomes narrower chunk by chunk nobody knows how much passes.
        passing = plan.passing_share if context.memory.share == 1 and not moving.guesses else None
        todo = self._pruned_chunks(context, readers, moving, passing)
        answers = ordered_map(context, read, todo, is_small=_is_small, looks_ahead=True)
        try:
            # The first chunk is small and goes alone: it may be all that a LIMIT wants, and the others profit
            # from what it tells of selectivities. Rows that are listed are few, and have passed.
            alone = 0 if self._gives_listed_rows(moving) or self._begins_at_once(context) else 1
            for chunk in islice(todo, alone):
                frame = read(chunk)
                if frame is not None:
                    yield frame
            for frame in answers:
                if frame is not None:
                    yield frame
        finally:
            stopped.set()
            answers.close()
            readers.close()
            self._show_dynamic_filters()

    def _scan_on(
        self, device: ScanningDevice[Frame], work: ScanWork[Frame], stopped: threading.Event
    ) -> Generator[Frame, None, None]:
        """The frames of a device that reads chunks itself."""
        if self._dynamic_filters_move:
            with self._scan_profile.lock:
                self._scan_profile.notes.append(NOT_FOLLOWED)
        own = device.scan(work)
        try:
            yield from own
        finally:
            stopped.set()
            own.close()
            work.readers.close()

    def _begins_at_once(self, context: ExecutionContext[Frame]) -> bool:
        """Whether one round of chunks is all of the table, and a first one would tell nothing to go by."""
        if not self._is_taken_whole or len(self._steps) > 1 or self._dynamic_filters_move:
            return False
        vectors = sum(fragment.vector_count for fragment in self._snapshot.fragments)
        return vectors <= context.threads * GIVEN_VECTORS

    @property
    def _dynamic_filters_move(self) -> bool:
        return any(taken.dynamic_filter.moves for taken in self._dynamic_filters)

    def _gives_listed_rows(self, moving: MovingDynamicFilters) -> bool:
        """Whether rows that are listed by their numbers are given out, and nothing else is asked of them."""
        listed = self._numbers is not None and self._numbers.listed_rows > 0
        return listed and not (self._steps or moving.guesses)

    def _pruned_chunks(
        self,
        context: ExecutionContext[Frame],
        readers: FragmentReaders[Frame],
        moving: MovingDynamicFilters,
        passing: Callable[[], float] | None,
    ) -> Iterator[Chunk]:
        names = list(self._scan_profile.columns)
        zone_maps = context.settings.zone_maps
        limits = ChunkLimits.for_threads(context.memory.share, context.threads)
        if context.settings.reader != "direct" and context.memory.share == 1:
            limits = limits.for_mapped_files()
        if self._begins_at_once(context):
            limits, passing = replace(limits, first=limits.vectors), None
        if self._keeps_encoded and context.device.capabilities.takes_encoded and context.memory.share == 1:
            limits = replace(limits, as_stored=True)
        keep, density = None, None
        if self._numbers is not None:
            keep, density = self._numbers.keep_vectors, self._numbers.density(self._snapshot.fragments)
        if density is not None:
            limits = limits.for_few_rows(density)
        cut: Iterable[Chunk] = cut_chunks(
            self._snapshot.fragments,
            self._ranges,
            names,
            zone_maps,
            limits,
            keep_vectors=keep,
            passing=passing,
        )
        if self._preferred is not None and zone_maps:
            column, descending = self._preferred
            cut = best_first(list(cut), column, descending=descending)
        for chunk in cut:
            left = moving.prune(chunk) if zone_maps else chunk
            readers.expect(left)
            yield left


def _is_small(chunk: Chunk) -> bool:
    """Whether a chunk is too little work to wake another thread for."""
    return chunk.rows < _SMALL_CHUNK


def _make_profile(
    scan: Scan, table: StoredTable, settings: Settings, scan_steps: Sequence[FilterStep]
) -> ScanProfile:
    schema = table.schema
    filters = [column for step in scan_steps for column in step.columns]
    profile = ScanProfile(
        "Scan",
        {"filter": " AND ".join(map(expression_text, scan.predicates))} if scan.predicates else {},
        source=table.name,
        version=table.snapshot.version,
        rows_total=table.snapshot.rows,
        reader="direct" if settings.reader == "direct" else "mapped",
        block_size=settings.block_size,
        verify=settings.verifies,
        zone_maps=settings.zone_maps,
        strategy=settings.strategy,
    )
    read = dict.fromkeys((*filters, *scan.columns))
    if isinstance(table, NumberedTable):
        read.pop(table.row_number, None)  # computed
    for column in read:
        roles = [("filter", column in filters), ("output", column in scan.columns)]
        name = schema.field(column).name
        profile.columns[name] = ColumnProfile(name, ", ".join(role for role, is_so in roles if is_so))
    if settings.profile_vectors:
        fragments = [FragmentVectors(f.id, f.vector_count, f.rows) for f in table.snapshot.fragments]
        profile.vector_map = VectorMap(fragments, tuple(profile.columns))
    return profile
