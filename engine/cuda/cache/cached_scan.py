"""Scans of tables whose columns are in the GPU's memory: conditions are computed there, and rows picked."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

from bamquery.engine.cuda.cache.column_cache import (
    CachedColumn,
    ColumnKey,
    cached,
    column_key,
)
from bamquery.engine.cuda.cache.late_columns import Held, LateColumn, RowPlaces
from bamquery.engine.cuda.cache.narrow_decimals import narrow_frame
from bamquery.engine.cuda.cache.own_dictionaries import as_dictionary, known_dictionary
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.libcudf_types import narrow_kind
from bamquery.engine.cuda.pipeline.row_selection import is_selectable
from bamquery.engine.cuda.scan.scan import scan_on_gpu
from bamquery.engine.cuda.scan.whole.read import read_columns
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.device import Device
from bamquery.engine.operators.scan.chunk_selection import SelectionPlan
from bamquery.engine.operators.scan.device_scan import ScanWork
from bamquery.engine.operators.scan.filter_order import AdaptiveFilterOrder, FilterStep, combine_steps
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import Expression
from bamquery.storage.format.storable_types import is_string_like, value_bits
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.plain_size import stored_bytes, string_bytes

_PIECE: Final = 1 << 28
"""Rows that are looked at together: what is made of them takes memory beside the columns."""
_SMALL_PIECE: Final = 1 << 26
"""The same under a limit."""
_QUERY_PART: Final = 2
"""Part of the cache's default size that the columns take which a query keeps for its other scans."""
_OFFSET_BYTES: Final = 8
_PLACE_BYTES: Final = 4
"""Of a row of a dictionary's."""
_MOST_ROWS: Final = 2**31 - 1
"""Of libcudf's columns."""
_KEY: Final = f"{__name__}.key"


def scan_columns(
    session: CudaSession, kernels: Kernels, device: Device[CudaFrame], work: ScanWork[CudaFrame]
) -> Generator[CudaFrame, None, None]:
    """As `scan_on_gpu`, of columns in the cache where they all are, or have been wanted often enough.

    Raises:
        as `scan_on_gpu`.
    """
    if not _may_be_cached(work):
        yield from scan_on_gpu(session, device, work, is_selectable)
        return
    limit = session.cache_limit(work.context.settings.gpu_cache_limit)
    keys = {name: _key(work, name) for name in work.columns}
    found = session.column_cache.find(keys.values(), limit) if limit else [None] * len(keys)
    query = session.query_columns.columns(work.context)
    read = [query.find(key) if one is None else one for key, one in zip(keys.values(), found, strict=True)]
    held = {name: one for name, one in zip(keys, read, strict=True) if one is not None}
    missing = {name: key for name, key in keys.items() if name not in held}
    here = [keys[name] for name in held]
    if not missing or (limit and _fetch(kernels, device, work, missing, held, here, limit)):
        yield from _CachedScan(session, kernels, device, work, held).frames()
        return
    columns = work.profile.columns
    before = {name: columns[name].counters.bytes for name in missing}
    try:
        fresh = read_columns(session, device, work, list(missing), partial(known_dictionary, kernels))
        if fresh is None:
            yield from scan_on_gpu(session, device, work, is_selectable)
            return
        given = {work.plan.schema.names[column] for column in work.plan.outputs}
        for name, column in fresh.items():
            if name in given:
                column = as_dictionary(kernels, device, work.plan.schema.field(name), column)  # noqa: PLW2901
            held[name] = cached(name, column)
            query.keep(keys[name], held[name], session.cache_limit(None) // _QUERY_PART)
        yield from _CachedScan(session, kernels, device, work, held, fresh=frozenset(fresh)).frames()
    finally:
        for name, key in missing.items():
            session.column_cache.note_read(key, columns[name].counters.bytes - before[name])


def _key(work: ScanWork[CudaFrame], name: str) -> ColumnKey:
    """As `column_key`, of which there are hundreds of files in each statement."""
    kept = f"{_KEY} {name}"
    found: ColumnKey | None = work.facts.get(kept)
    if found is None:
        found = work.facts[kept] = column_key(work.fragments, name)
    return found


def _may_be_cached(work: ScanWork[CudaFrame]) -> bool:
    """Whether nothing is asked of the scan but rows."""
    settings = work.context.settings
    plain = settings.reader in ("auto", "mapped") and settings.strategy == "auto"
    return (
        0 < sum(fragment.rows for fragment in work.fragments) <= _MOST_ROWS
        and plain
        and not settings.profile_vectors
        and settings.verifies
        and not settings.verifies_all
        and work.plan.numbers is None
    )


def _fetch(  # noqa: PLR0917 - of one scan
    kernels: Kernels,
    device: Device[CudaFrame],
    work: ScanWork[CudaFrame],
    missing: dict[str, ColumnKey],
    held: dict[str, CachedColumn],
    kept: Sequence[ColumnKey],
    limit: int,
) -> bool:
    """Read columns that are not here whole, where they are worth it; False: the scan goes on without."""
    session = kernels.session
    cache = session.column_cache
    sizes = {key: _sizes(work.fragments, name) for name, key in missing.items()}
    if not cache.admits(sizes, limit, kept):
        return False
    schema = work.plan.schema
    positions = tuple(schema.get_field_index(name) for name in missing)
    everything = SelectionPlan(positions, (), schema, AdaptiveFilterOrder([], []))
    whole = replace(work, plan=everything, ranges=(), columns=list(missing))
    try:
        chosen = pa.schema([schema.field(place) for place in positions])
        frames = [narrow_frame(kernels, one, chosen) for one in scan_on_gpu(session, device, whole)]
        for place, (name, key) in enumerate(missing.items()):
            together = device.concatenate([device.select(frame, [place]) for frame in frames])
            own = as_dictionary(kernels, device, schema.field(name), together.held[0])
            held[name] = cached(name, own)
            if not cache.put(key, held[name], limit, [*kept, *missing.values()]):
                cache.refuse(missing.values())
                return False
    except MemoryLimitError:
        cache.refuse(missing.values())
        return False
    return True


def _sizes(fragments: Sequence[Fragment], name: str) -> tuple[int, int]:
    """About what a column takes as libcudf has it, and what it takes in files."""
    places = [(fragment, fragment.column_index(name)) for fragment in fragments]
    rows = sum(fragment.rows for fragment in fragments)
    kind = fragments[0].schema.field(places[0][1]).type
    if all(f.layout.columns[place].dictionary is not None for f, place in places):
        size = rows * _PLACE_BYTES
    elif is_string_like(kind):
        size = rows * _OFFSET_BYTES + sum(string_bytes(*place) for place in places)
    else:
        size = rows * max(value_bits(narrow_kind(kind)) // 8, 1) + rows // 8
    return size, sum(stored_bytes(*place) for place in places)


class _CachedScan:
    """One scan of columns that are all in the GPU's memory; one thread uses it.

    `fresh`: those that were read for it.
    """

    def __init__(  # noqa: PLR0917 - of one scan
        self,
        session: CudaSession,
        kernels: Kernels,
        device: Device[CudaFrame],
        work: ScanWork[CudaFrame],
        held: dict[str, CachedColumn],
        fresh: frozenset[str] = frozenset(),
    ) -> None:
        self._fresh = fresh
        self._session = session
        self._device = device
        self._work = work
        schema = work.plan.schema
        self._sizes = {schema.get_field_index(name): one.nbytes for name, one in held.items()}
        self._conditions: dict[tuple[int, ...], tuple[tuple[FilterStep, ...], Expression]] = {}
        """Of steps, which are held, so that nothing else has their ids."""
        self._needed: set[int] = set()
        """Columns whose rows have been counted, of the piece that is in work."""
        self._rows = sum(fragment.rows for fragment in work.fragments)
        places = RowPlaces.run(kernels, 0, self._rows, whole=True)
        self._held = {
            schema.get_field_index(name): _late(kernels, one.column, places) for name, one in held.items()
        }

    def frames(self) -> Generator[CudaFrame, None, None]:
        """One for each piece of the table that has rows which pass, in row order."""
        self._session.enter()
        together, waiting = self._divide_steps()
        piece = _PIECE if self._session.limit is None else _SMALL_PIECE
        for begin in range(0, self._rows, piece):
            self._work.check()
            rows = min(piece, self._rows - begin)
            self._needed.clear()
            with self._work.profile.lock:
                self._work.profile.rows_scanned += rows
            columns = tuple(self._held)
            whole = make_frame([self._held[column] for column in columns], self._rows)
            frame = _Columns(self._device.slice(whole, begin, rows), columns)
            passed = self._filter(frame, together, list(waiting))
            if passed is not None:
                yield passed

    def _divide_steps(self) -> tuple[list[FilterStep], list[FilterStep]]:
        """The plan's steps that one kernel computes, and others that are worth it.

        Nobody asks whether a step is worth it that costs a look at a column in memory.
        """
        plan = self._work.plan
        steps = [*plan.steps, *plan.dynamic_filters()]
        if len(steps) > 1 and self._are_together(steps):
            return steps, []
        together = [step for step in steps if self._are_together([step])]
        others = [step for step in steps if step not in together]
        return together, [step for step in others if plan.order.is_worth(step)]

    def _are_together(self, steps: Sequence[FilterStep]) -> bool:
        """Whether one kernel computes all of them."""
        if any(step.can_fail for step in steps):
            return False
        columns = _columns_of(steps)

        def has_dictionary(place: int) -> bool:
            return self._held[columns[place]].dictionary is not None

        return is_selectable(self._condition(steps, columns), has_dictionary)

    def _condition(self, steps: Sequence[FilterStep], columns: Sequence[int]) -> Expression:
        """All steps' conditions as one over the columns that they look at: the same expression each time."""
        key = tuple(map(id, steps))  # numbers of steps that come while the scan runs may be used twice
        found = self._conditions.get(key)
        if found is None:
            made = combine_steps(steps, columns, self._work.plan.schema)
            found = self._conditions[key] = tuple(steps), made
        return found[1]

    def _filter(
        self, frame: _Columns, together: Sequence[FilterStep], waiting: list[FilterStep]
    ) -> CudaFrame | None:
        plan = self._work.plan
        if together:
            frame = self._keep(frame, together, waiting)
        while waiting and frame.frame.rows:
            step = plan.order.choose_next(waiting, lambda one: float(len(one.columns)))
            waiting.remove(step)
            frame = self._keep(frame, [step], waiting)
        if not frame.frame.rows:
            return None
        self._count(plan.outputs, frame.frame.rows)
        return frame.select(self._device, plan.outputs)

    def _keep(self, frame: _Columns, steps: Sequence[FilterStep], waiting: Sequence[FilterStep]) -> _Columns:
        """The rows that pass some steps, and of the columns those that are wanted from here on."""
        plan, device = self._work.plan, self._device
        columns = _columns_of(steps)
        condition = self._condition(steps, columns)
        before = frame.frame.rows
        self._count(columns, before)
        passed = device.matching_positions(condition, frame.select(device, columns))
        if len(steps) == 1:
            plan.order.learn(steps[0], before, len(passed))
        wanted = tuple(dict.fromkeys((*plan.outputs, *(c for step in waiting for c in step.columns))))
        kept = frame.select(device, wanted)
        return _Columns(kept if len(passed) == before else device.take(kept, passed), wanted)

    def _count(self, columns: Sequence[int], rows: int) -> None:
        """So many rows of columns are looked at, of each the first time that somebody does."""
        profile, schema = self._work.profile, self._work.plan.schema
        with profile.lock:
            for column in columns:
                if column not in self._needed:
                    self._needed.add(column)
                    figures = profile.columns[schema.field(column).name]
                    figures.cached += figures.name not in self._fresh
                    figures.rows_needed += rows
                    figures.bytes_needed += self._sizes[column] * rows // self._rows


def _columns_of(steps: Sequence[FilterStep]) -> tuple[int, ...]:
    """All that steps look at, each once."""
    return tuple(dict.fromkeys(column for step in steps for column in step.columns))


def _late(kernels: Kernels, column: Held, places: RowPlaces) -> LateColumn:
    """The cache's column for this scan: what is copied of it goes with the scan's frames."""
    if isinstance(column, LateColumn):
        return column.move(column.places)
    return LateColumn(kernels, column, places)


class _Columns:
    """A frame, and which columns of the schema its own are."""

    def __init__(self, frame: CudaFrame, columns: tuple[int, ...]) -> None:
        self.frame = frame
        self._columns = columns

    def select(self, device: Device[CudaFrame], columns: Sequence[int]) -> CudaFrame:
        """Those columns, by position in the schema."""
        return device.select(self.frame, [self._columns.index(column) for column in columns])
