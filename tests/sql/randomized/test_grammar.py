"""Random queries of every kind, many over each database: BamQuery's answers are DuckDB's.

`make random-queries` asks any number of them; `run.py` says how one that failed is asked again.
"""

from __future__ import annotations

from collections import Counter

import duckdb
import pyarrow as pa
import pytest

from tests.sql.randomized.compare import difference
from tests.sql.randomized.grammar.blanks import without_blanks
from tests.sql.randomized.run import PER_DATABASE, Database, Tally, run

QUICK = range(1, 3)
ANSWERED = ("rows", "empty", "errors", "order", "changed")


@pytest.mark.parametrize("seed", QUICK)
def test_answers(seed: int, device_name: str) -> None:
    tally = run(seed, device=device_name)
    assert tally.failures == []
    answered = sum(tally.counts[outcome] for outcome in ANSWERED)
    refused = 0.05 if device_name == "cpu" else 0.4  # libcudf has not all functions and types
    assert answered >= (0.95 - refused) * PER_DATABASE, tally.report()
    assert tally.counts["refused"] <= refused * PER_DATABASE, tally.report()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(3, 11), *range(100, 150)])
def test_many_answers(seed: int, device_name: str) -> None:
    assert run(seed, device=device_name).failures == []


def test_a_seed_is_one_run() -> None:
    assert run(3, 15).counts == run(3, 15).counts


def test_a_fault_of_duckdb_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = duckdb.InternalException("INTERNAL Error: inequal types")
    monkeypatch.setattr(Database, "their_answer", lambda self, sql: fault)
    tally = run(3, 5)
    assert (tally.failures, tally.counts["broken"]) == ([], 5)
    assert "broken: InternalException" in tally.report()


def test_operators_without_blanks() -> None:
    written = "SELECT a + 1e3 - 2, 'x + y' || t, a - -3, a <= (b) FROM t WHERE c1 = '' AND \"a + b\" % 2 <> 0"
    assert without_blanks(written) == (
        "SELECT a+1e3-2, 'x + y'||t, a - -3, a<=(b) FROM t WHERE c1='' AND \"a + b\"%2<>0"
    )


NAN = float("nan")


@pytest.mark.parametrize(
    ("ours", "theirs", "ordered", "alike"),
    [
        ([1, 2], [2, 1], (), True),
        ([1, 2], [2, 1], (0,), False),
        ([1, 1], [1, 2], (), False),
        ([1, None], [None, 1], (), True),
        ([NAN, 0.0], [-0.0, NAN], (), True),
        ([1.0, 2.0], [2.0 + 1e-12, 1.0], (), True),
        ([1.0, 2.0], [2.1, 1.0], (), False),
        ([0.0, 0.5], [0.5 + 1e-15, -1e-17], (), True),
        (["a"], ["A"], (), False),
        ([], [], (), True),
        ([1], [1, 1], (), False),
    ],
)
def test_difference(ours: list[object], theirs: list[object], ordered: tuple[int, ...], alike: bool) -> None:
    kind = next((pa.array([value]).type for value in [*ours, *theirs] if value is not None), pa.int64())
    tables = [pa.table({"c": pa.array(values, kind)}) for values in (ours, theirs)]
    assert (difference(tables[0], tables[1], ordered) == "") == alike


def test_types_count() -> None:
    assert difference(pa.table({"c": pa.array([1], pa.int32())}), pa.table({"c": [1]}), ()) != ""


def test_tallies_add_up() -> None:
    one, other = Tally(Counter(rows=2)), Tally(Counter(rows=1, empty=1), [(1, 2, "types", "SELECT 1")])
    one.add(other)
    assert one.counts == Counter(rows=3, empty=1)
    assert "4 queries" in one.report()
    assert one.failures == other.failures
