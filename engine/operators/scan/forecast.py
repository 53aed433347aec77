"""What a scan is expected to do, before it reads anything: for EXPLAIN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.operators.scan.column_reads import forced_strategy
from bamquery.engine.operators.scan.filter_order import AdaptiveFilterOrder, FilterStep
from bamquery.engine.settings import Settings
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.planner import Choice, Strategy, choose


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
            step = self._order.next(waiting, lambda s: sum(self._cost(names[c]) for c in s.columns))
            for column in step.columns:
                self._take(names[column])
            self._alive *= self._order.selectivity(step)
            self._filtered = True
            waiting.remove(step)
        for name in outputs:
            self._take(name)

    def _cost(self, name: str) -> float:
        if name in self._read:
            return 0.0
        return sum(choice.cost_seconds for choice in self._choices(name))

    def _take(self, name: str) -> None:
        if name in self._read:
            return
        self._read.add(name)
        column = self.columns[name]
        for choice in self._choices(name):
            column.strategies[choice.strategy] += 1
            column.bytes += choice.bytes

    def _choices(self, name: str) -> list[Choice]:
        forced = forced_strategy(self._settings) if self._filtered else Strategy.STREAM
        return [self._choice(fragment, left, name, forced) for fragment, left in self._fragments if len(left)]

    def _choice(
        self, fragment: Fragment, left: NDArray[np.int64], name: str, forced: Strategy | None
    ) -> Choice:
        rows = round(self._alive * min(len(left) * VECTOR_ROWS, fragment.rows))
        kind = "direct" if self._settings.reader == "direct" else "mapped"
        volume = DeviceProfile.measure(fragment.path, kind)
        return choose(fragment, name, rows, left, volume, self._settings.block_size, kind, forced)
