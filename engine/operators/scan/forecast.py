"""What a scan is expected to do, before it reads anything: for EXPLAIN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.operators.scan.column_reads import forced_strategy
from bamquery.engine.operators.scan.filter_order import AdaptiveFilterOrder, FilterStep
from bamquery.engine.operators.scan.open_fragments import reader_shape
from bamquery.engine.settings import Settings
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.read_planner.column_demands import expected_demands
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.hit_pyramid import HitPyramid
from bamquery.storage.read_planner.planner import Choice, Strategy, plan_reads
from bamquery.storage.read_planner.processor_profile import processor_rates


@dataclass
class ColumnForecast:
    """One column: how many fragments' parts by which strategy, and how much."""

    name: str
    role: str
    strategies: Counter[Strategy] = field(default_factory=Counter)
    vectors_total: int = 0
    vectors_pruned: int = 0
    bytes: int = 0
    """Expected to be read."""
    seconds: float = 0.0
    """That this should take."""


class ScanForecast:
    """Walks through a scan with guessed selectivities."""

    def __init__(
        self,
        fragments: Sequence[tuple[Fragment, NDArray[np.int64]]],
        columns: Sequence[ColumnForecast],
        order: AdaptiveFilterOrder,
        settings: Settings,
    ) -> None:
        """`fragments` come with the vectors that zone maps leave of them."""
        self.columns = {column.name: column for column in columns}
        self._fragments = fragments
        self._order = order
        self._settings = settings
        self._alive = 1.0
        """Share of the rows of the vectors left that is expected to have passed."""
        self._filtered = False
        self._read: set[str] = set()
        for fragment, left in fragments:
            for column in columns:
                column.vectors_total += fragment.vector_count
                column.vectors_pruned += fragment.vector_count - len(left)

    @property
    def rows(self) -> int:
        """Rows expected to come out."""
        return round(self._alive * sum(min(len(v) * VECTOR_ROWS, f.rows) for f, v in self._fragments))

    def run(self, steps: Sequence[FilterStep], names: Sequence[str], outputs: Sequence[str]) -> None:
        """Take the steps in the order that costs least, then the outputs; `names` are the schema's."""
        waiting = list(steps)
        while waiting:
            step = self._order.choose_next(waiting, lambda s: self._cost([names[c] for c in s.columns]))
            self._take([names[column] for column in step.columns])
            self._alive *= self._order.selectivity(step)
            self._filtered = True
            waiting.remove(step)
        self._take(outputs)

    def _cost(self, names: Sequence[str]) -> float:
        return sum(choice.cost_seconds for _, choice in self._choices(names))

    def _take(self, names: Sequence[str]) -> None:
        for name, choice in self._choices(names):
            column = self.columns[name]
            column.strategies[choice.strategy] += 1
            column.bytes += choice.bytes
            column.seconds += choice.cost_seconds
        self._read.update(names)

    def _choices(self, names: Sequence[str]) -> list[tuple[str, Choice]]:
        """Of columns that were not read yet, in all fragments that zone maps leave something of."""
        wanted = [name for name in dict.fromkeys(names) if name not in self._read]
        forced = forced_strategy(self._settings) if self._filtered else Strategy.STREAM
        strategies = tuple(Strategy) if forced is None else (forced,)
        found: list[tuple[str, Choice]] = []
        for fragment, left in self._fragments:
            if len(left) and wanted:
                found += zip(wanted, self._plan(fragment, left, wanted, strategies), strict=True)
        return found

    def _plan(
        self,
        fragment: Fragment,
        left: NDArray[np.int64],
        names: Sequence[str],
        strategies: Sequence[Strategy],
    ) -> list[Choice]:
        rows = min(len(left) * VECTOR_ROWS, fragment.rows)
        hits = HitPyramid.from_vectors(left, rows).thin_out(self._alive)
        kind = "direct" if self._settings.reader == "direct" else "mapped"
        volume = DeviceProfile.measure(fragment.path, kind)
        shape = reader_shape(self._settings.block_size, kind, volume, self._settings)
        demands = [expected_demands(fragment.column(name), hits, left, shape, strategies) for name in names]
        model = volume.model(processor_rates(), kind)
        return plan_reads(demands, model, verified_first=shape.verifies)
