"""What whole vectors cost is counted once for a fragment, and picks are what counting would give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.operators.scan import known_costs
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.engine.operators.scan.known_costs import AskedRead, KnownCosts
from bamquery.engine.operators.scan.open_fragments import FragmentReaders, OpenFragment
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import Call, ColumnRef, Literal
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.read_planner.column_demands import stored_demands
from bamquery.storage.read_planner.corrections import Corrections
from bamquery.storage.read_planner.planner import Choice, Strategy, plan_reads
from bamquery.storage.tables.snapshot import Snapshot
from tests.stored import run_scan, stored

ROWS = 200_000


@pytest.fixture
def snapshot(tmp_path: Path) -> Iterator[Snapshot]:
    random = np.random.default_rng(3)
    table = pa.table({"a": random.integers(0, 1000, ROWS), "b": random.integers(0, 1 << 40, ROWS)})
    with stored(tmp_path / "db", table, encoding="auto") as found:
        yield found


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Strategy, ...]]:
    """Ways of reading that were counted, a call each."""
    calls: list[tuple[Strategy, ...]] = []

    def count(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments[4])
        return stored_demands(*arguments, **options)

    monkeypatch.setattr(known_costs, "stored_demands", count)
    return calls


def opened_of(snapshot: Snapshot, block_size: int = 512) -> tuple[Fragment, OpenFragment[Any]]:
    settings = Settings().with_values({"block_size": block_size})
    (fragment,) = snapshot.fragments
    readers: FragmentReaders[Any] = FragmentReaders(settings, ScanProfile("Scan"))
    return fragment, readers.get(fragment)


def test_the_next_scan_knows_what_whole_vectors_cost(
    snapshot: Snapshot, counted: list[tuple[Strategy, ...]]
) -> None:
    predicate = Call("less", (ColumnRef(0, "a", pa.int64()), Literal(pa.scalar(500))), pa.bool_())
    first, _ = run_scan(snapshot, ("b",), [predicate], threads=1)
    assert counted
    counted.clear()
    second, _ = run_scan(snapshot, ("b",), [predicate], threads=1)
    assert not counted
    assert second.equals(first)


def test_what_another_reader_costs_is_not_known(snapshot: Snapshot) -> None:
    fragment, small = opened_of(snapshot)
    _, large = opened_of(snapshot, 4096)
    known = known_costs.costs_of(fragment, small)
    assert known_costs.costs_of(fragment, small) is known
    assert known_costs.costs_of(fragment, large) is not known


def pick(opened: OpenFragment[Any], piece: Piece, rows: np.ndarray, costs: KnownCosts) -> Choice:
    asked = AskedRead(opened, piece, rows, decodes=True)
    (found,) = costs.pick_each(asked, ["b"], tuple(Strategy), Corrections(opened.model))
    return found


@pytest.mark.parametrize("step", [1, 3, 40, 600, 5000])
def test_a_pick_is_what_counting_gives(snapshot: Snapshot, step: int) -> None:
    fragment, opened = opened_of(snapshot)
    piece = Piece(fragment, 0, ROWS, np.arange(fragment.vector_count))
    rows = np.arange(0, ROWS, step)
    costs = KnownCosts()
    demands = stored_demands(fragment.column("b"), rows, piece.vectors, opened.shape)
    (expected,) = plan_reads([demands], opened.model)
    found = pick(opened, piece, rows, costs)
    assert found.strategy is expected.strategy
    assert found.cost_seconds == pytest.approx(expected.cost_seconds)
    # Of half the rows, which lie as densely, about half.
    half = pick(opened, piece, rows[: -(-len(rows) // 2)], costs)
    if expected.strategy is not Strategy.STREAM:
        assert half.cost_seconds == pytest.approx(expected.cost_seconds / 2, rel=0.1, abs=3e-6)


def test_single_blocks_are_counted_by_each_scan(
    snapshot: Snapshot, counted: list[tuple[Strategy, ...]]
) -> None:
    """How rows lie within vectors is a matter of the conditions."""
    fragment, opened = opened_of(snapshot)
    piece = Piece(fragment, 0, ROWS, np.arange(fragment.vector_count))
    for _ in range(2):
        counted.clear()
        costs = KnownCosts()
        pick(opened, piece, np.arange(0, ROWS, 5000), costs)
        pick(opened, piece, np.arange(7, ROWS, 5000), costs)
        assert counted.count((Strategy.FETCH_BLOCKS,)) == 1
