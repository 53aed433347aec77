"""What the planner chooses costs at most 2 % more than the best that was there, by exactly counted reads.

Drives of 131,000 and a million commands a second, of 3.5 and 7 GB/s, and memory are imitated by their rates;
what a strategy costs is then what its commands and bytes, counted row by row, take there. The planner knows
the pyramid only.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from bamquery.storage.read_planner.column_demands import ReaderShape, expected_demands, stored_demands
from bamquery.storage.read_planner.corrections import Corrections
from bamquery.storage.read_planner.cost_model import CostModel, Path, ProcessorRates, ReadDemand
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.hit_pyramid import HitPyramid
from bamquery.storage.read_planner.planner import VERIFIED_FIRST, Strategy, plan_reads
from tests.selection.effort import spread
from tests.unit.storage.read_planner.selections import (
    BLOCK,
    KINDS,
    SELECTIVITIES,
    WIDTHS,
    ImitatedColumn,
    Selected,
    select,
)

PROCESSOR = ProcessorRates(checksum=2e10)
REGRET = 1.02


def allowed(best: float, model: CostModel) -> float:
    """Of a few dozen commands two are more than 2 %: chance decides how many they are."""
    return REGRET * best + 2 / model.paths[Path.BLOCKS].commands


def drive(commands: float, bandwidth: float) -> CostModel:
    return DeviceProfile(bandwidth, commands, 8e-5).model(PROCESSOR, "direct")


DEVICES = {
    "131 k, 3.5 GB/s": drive(131e3, 3.5e9),
    "131 k, 7 GB/s": drive(131e3, 7e9),
    "1 M, 3.5 GB/s": drive(1e6, 3.5e9),
    "1 M, 7 GB/s": drive(1e6, 7e9),
    "memory": DeviceProfile(1e10, 2e7, 1e-6).model(PROCESSOR, "mapped"),
}
SHAPES = {name: ReaderShape(BLOCK, None if name == "memory" else 256 << 10) for name in DEVICES}


class Counted:
    """Exact demands of columns for one selection, counted once for all devices."""

    def __init__(self, selected: Selected, reader: ReaderShape) -> None:
        self.selected = selected
        self.reader = reader
        self.hits = HitPyramid.count(selected.rows)
        self._exact: dict[float, Mapping[Strategy, ReadDemand]] = {}

    def exact(self, bits: float) -> Mapping[Strategy, ReadDemand]:
        if bits not in self._exact:
            column = ImitatedColumn(bits)
            self._exact[bits] = stored_demands(
                column, self.selected.rows, self.selected.candidates, self.reader
            )
        return self._exact[bits]

    def planned(self, bits: float) -> Mapping[Strategy, ReadDemand]:
        return expected_demands(ImitatedColumn(bits), self.hits, self.selected.candidates, self.reader)


@cache
def counted(kind: str, share: float, reader: ReaderShape) -> Counted:
    """Of one selection."""
    return Counted(select(kind, share), reader)


def seconds(model: CostModel, demands: Sequence[ReadDemand]) -> float:
    return model.seconds(model.cost(demand) for demand in demands)


def best_of(model: CostModel, columns: Sequence[Mapping[Strategy, ReadDemand]], dear: float = 1.0) -> float:
    """The least that any combination takes; blocks are `dear` where they are to be avoided.

    Then their checksums, which nobody can compare, count as if they were.
    """
    found = []
    for ways in itertools.product(*(demands.items() for demands in columns)):
        unverified = dear > 1 and any(strategy is Strategy.FETCH_BLOCKS for strategy, _ in ways)
        asked = [replace(d, checked=d.bytes) if unverified else d for _, d in ways]
        found.append(seconds(model, asked) * (dear if unverified else 1.0))
    return min(found)


@pytest.mark.parametrize("kind", KINDS)
def test_of_one_column(kind: str) -> None:
    asked = 0
    for share in SELECTIVITIES:
        for (name, model), bits in itertools.product(DEVICES.items(), WIDTHS):
            found = counted(kind, share, SHAPES[name])
            exact = found.exact(bits)
            for verified_first in (False, True):
                (choice,) = plan_reads([found.planned(bits)], model, verified_first=verified_first)
                took = seconds(model, [exact[choice.strategy]])
                dear = 1 / VERIFIED_FIRST if verified_first else 1.0
                assert took <= allowed(best_of(model, [exact], dear), model), (
                    share,
                    name,
                    bits,
                    choice.strategy,
                )
                asked += 1
    assert asked == 2 * 26 * len(DEVICES) * len(WIDTHS)


@pytest.mark.parametrize("kind", KINDS)
def test_of_columns_together(kind: str) -> None:
    """Wide and narrow ones share a drive: one is worth its commands where all of them are not."""
    for share in SELECTIVITIES[::2]:
        for name, model in DEVICES.items():
            found = counted(kind, share, SHAPES[name])
            choices = plan_reads([found.planned(bits) for bits in WIDTHS], model, verified_first=False)
            exact = [found.exact(bits) for bits in WIDTHS]
            took = seconds(model, [e[c.strategy] for e, c in zip(exact, choices, strict=True)])
            assert took <= allowed(best_of(model, exact), model), (share, name)


def test_more_columns_than_can_be_tried() -> None:
    for name, model in DEVICES.items():
        found = counted("time", 1e-3, SHAPES[name])
        few = [found.planned(bits) for bits in (13, 64, 4)]
        exact = [found.exact(bits) for bits in (13, 64, 4)]
        many = plan_reads(few * 5, model, verified_first=False)
        took = seconds(model, [e[c.strategy] for e, c in zip(exact * 5, many, strict=True)])
        # Five times the same three columns cost at most five times what three do.
        assert took <= 5 * allowed(best_of(model, exact), model)


def off(model: CostModel, factor: float, which: str) -> CostModel:
    """A model whose drive is `factor` times as fast in one respect as it claims."""
    paths = {}
    for path, rates in model.paths.items():
        bandwidth = rates.bandwidth * (factor if which != "commands" else 1)
        commands = rates.commands * (factor if which != "bandwidth" else 1)
        paths[path] = type(rates)(bandwidth, commands, rates.latency)
    return CostModel(paths, model.processor, overlaps=model.overlaps)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "which", "factor"),
    spread(product(["random", "time", "expression"], ["commands", "bandwidth", "both"], [0.5, 2.0]), 5),
)
def test_rates_that_are_wrong_are_corrected(
    kind: str, which: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what chunks take: once four of them were read little is lost, and not much in the whole scan."""
    monkeypatch.setattr(Corrections, "learn", LEARN)
    sizes = [1 / 64, 1 / 8, *[1.0] * 40]  # as scans grow their chunks, of 8 million rows on a GPU
    for name, assumed in DEVICES.items():
        actual = off(assumed, factor, which)
        for share, bits in itertools.product(SELECTIVITIES[::3], (4, 13, 64)):
            exact = counted(kind, share, SHAPES[name]).exact(bits)
            best = best_of(actual, [exact], 1 / VERIFIED_FIRST)
            if 16 * best < 1e-3:
                continue  # there is little to lose, and what it takes says nothing
            corrections = Corrections(assumed)
            took = []
            for number, size in enumerate(sizes):
                chunk = {strategy: times(demand, 16 * size) for strategy, demand in exact.items()}
                explores = 16 * size <= sum(sizes[number:])
                (choice,) = plan_reads([chunk], assumed, corrections, explores=explores)
                corrections.learn([choice], seconds(actual, [choice.demand]))
                took.append(seconds(actual, [exact[choice.strategy]]))
            assert max(took[6:]) <= 1.15 * best, (share, name, bits)
            assert np.dot(took, sizes) <= 1.5 * best * sum(sizes), (share, name, bits)


def test_what_took_no_time_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the clock is coarse."""
    monkeypatch.setattr(Corrections, "learn", LEARN)
    model = next(iter(DEVICES.values()))
    demand = ReadDemand(Path.SEQUENTIAL, 1 << 28, 64)
    choice = plan_reads([{Strategy.STREAM: demand}], model)[0]
    key = Strategy.STREAM, model.scarcest(choice.predicted) if model.overlaps else None
    corrections = Corrections(model)
    for seconds_taken in (0.0, -1.0):
        corrections.learn([choice], seconds_taken)
        assert corrections.factor(*key) == 1.0
    corrections.learn([choice], 2 * choice.cost_seconds)
    assert corrections.factor(*key) > 1.5


def times(demand: ReadDemand, factor: float) -> ReadDemand:
    """The same for so many times as many rows."""
    commands = max(round(demand.commands * factor), 1)
    return replace(
        demand,
        bytes=round(demand.bytes * factor),
        commands=commands,
        checked=round(demand.checked * factor),
    )


LEARN = Corrections.__dict__["learn"]
"""Before other tests' assumption takes its place."""
