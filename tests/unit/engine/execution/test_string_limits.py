"""Texts that functions make: how much at once, and what happens to more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bamquery
from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution import string_limits as text_bounds
from bamquery.engine.execution.string_limits import (
    LargeStringError,
    StringLimits,
    require_room,
    use_string_limits,
)
from bamquery.errors import CancelledError, MemoryLimitError
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Literal
from bamquery.plan.nodes import SingleRow, SortKey, Window
from bamquery.plan.windows import WindowCall
from bamquery.statement_context.cancellation import use_cancellation_check

ROWS = 1000
TEXT = pa.large_string()


def repeated(times: int) -> Call:
    return Call("repeat", (ColumnRef(0, "s", TEXT), Literal(pa.scalar(times, pa.int64()))), TEXT)


def batch() -> pa.RecordBatch:
    return pa.record_batch({"s": pa.array([f"{i:03}" for i in range(ROWS)], TEXT)})


def connection(tmp_path: Path, memory_limit: str = "64 MiB") -> Any:
    con = bamquery.connect(tmp_path / "db", threads=2, memory_limit=memory_limit)
    con.load("t", pa.table({"i": range(ROWS), "s": [f"{i:03}" for i in range(ROWS)]}))
    return con


def test_what_is_made_on_the_way_is_made_by_pieces() -> None:
    seen: list[int] = []
    length = Call("length", (repeated(10_000),), pa.int64())
    with (
        use_string_limits(StringLimits(piece=1 << 20, answer=1 << 25)),
        use_cancellation_check(lambda: seen.append(1)),
    ):
        found = CpuDevice().evaluate([length], batch())
        assert found.column(0).to_pylist() == [30_000] * ROWS
        pieces = len(seen)
        longer = Call("greater", (length, Literal(pa.scalar(5, pa.int64()))), pa.bool_())
        assert CpuDevice().filter(batch(), longer).num_rows == ROWS
    assert pieces > 25


def test_answers_are_bounded_too() -> None:
    with use_string_limits(StringLimits(piece=1 << 20, answer=1 << 21)), pytest.raises(LargeStringError):
        CpuDevice().evaluate([repeated(10_000)], batch())


def test_pieces_ask_whether_to_go_on() -> None:
    def cancelled() -> None:
        raise CancelledError("stop")

    length = Call("length", (repeated(10_000),), pa.int64())
    with (
        use_string_limits(StringLimits(piece=1 << 20)),
        use_cancellation_check(cancelled),
        pytest.raises(CancelledError),
    ):
        CpuDevice().evaluate([length], batch())


@pytest.mark.parametrize("allowed", [0, 3])
def test_steps_of_a_window_ask_whether_to_go_on(allowed: int) -> None:
    asked: list[int] = []

    def check() -> None:
        asked.append(1)
        if len(asked) > allowed:
            raise CancelledError("stop")

    number = ColumnRef(0, "i", pa.int64())
    call = WindowCall(AggregateCall("sum", (number,), HUGEINT))
    window = Window(SingleRow(), (), (SortKey(number),), (call,), ("c",))
    rows = pa.record_batch({"i": pa.array(range(ROWS), pa.int64())})
    with use_cancellation_check(check), pytest.raises(CancelledError):
        CpuDevice().window(window, rows)


def test_bounds_of_a_query() -> None:
    bounds = StringLimits.for_query(1 << 30, 2)
    assert (bounds.piece, bounds.answer, bounds.most) == (32 << 20, 32 << 20, 256 << 20)
    small = StringLimits.for_query(1 << 20, 2)
    assert (small.piece, small.answer, small.most) == (4 << 20, 4 << 20, 16 << 20)
    with use_string_limits(bounds):
        require_room("repeat()", 32 << 20, 2)
        require_room("repeat()", 256 << 20, 1)
        with pytest.raises(LargeStringError):
            require_room("repeat()", (32 << 20) + 1, 2)
        with pytest.raises(LargeStringError, match=r"repeat.* would make 268,435,457 bytes.* memory_limit"):
            require_room("repeat()", (256 << 20) + 1, 1)
    assert text_bounds.current_string_limits() == StringLimits()


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT sum(length(r)) FROM (SELECT repeat(s, 30000) AS r FROM t)", 90_000_000),
        ("SELECT max(repeat(s, 30000)) = repeat('999', 30000) FROM t", True),
        ("SELECT count(*) FROM t WHERE repeat(s, 30000) LIKE '%99'", 10),
        ("SELECT sum(length(rpad(s, 60000, 'xy'))) FROM t", 60_000_000),
        ("SELECT sum(length(lpad(s, 60000, i::VARCHAR))) FROM t", 60_000_000),
        ("SELECT sum(length(replace(repeat(s, 10), '0', repeat('y', 90000)))) FROM t", 270_027_000),
        (
            "SELECT sum(length(regexp_replace(repeat(s, 10), '0', repeat('y', 90000), 'g'))) FROM t",
            270_027_000,
        ),
        ("SELECT length(regexp_replace(repeat('a', 30000), 'z', repeat('b', 100000), 'g'))", 30_000),
        ("SELECT length(regexp_replace(repeat('a', 9000), '(a*)', repeat('\\1', 1000), 'g'))", 9_000_000),
        ("SELECT length(strftime(DATE '2020-01-01', repeat('%A-', 3000)))", 30_000),
        ("SELECT sum(length(s || repeat('x', 100000))) FROM t", 100_003_000),
        ("SELECT sum(length(concat_ws(repeat('-', 50000), s, s, i))) FROM t", 100_008_890),
        ("SELECT count(*) FROM (SELECT repeat('x', 100000) AS r, s FROM t) WHERE r < s", 0),
        ("SELECT sum(length(CASE WHEN i = 3 THEN repeat(s, 1000000) ELSE s END)) FROM t", 3_002_997),
    ],
)
def test_queries_under_a_small_limit(tmp_path: Path, query: str, answer: object) -> None:
    with connection(tmp_path) as con:
        assert con.sql(query).fetchall() == [(answer,)]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT count(DISTINCT repeat(s, 10000)) FROM t", ROWS),
        ("SELECT count(*) FROM (SELECT DISTINCT repeat(s, 10000) FROM t)", ROWS),
        ("SELECT count(*) FROM (SELECT repeat(s, 10000) FROM t GROUP BY ROLLUP (repeat(s, 10000), i))", 2001),
        ("SELECT sum(length(m)) FROM (SELECT first(repeat(s, 10000)) AS m FROM t GROUP BY i)", 30_000_000),
        ("SELECT length(quantile_disc(repeat(s, 10000), 0.5)) FROM t", 30_000),
        ("SELECT count(*) FROM (SELECT DISTINCT ON (repeat(s, 10000)) i FROM t ORDER BY ALL)", ROWS),
        ("SELECT max(r) FROM (SELECT rank() OVER (ORDER BY repeat(s, 10000)) AS r FROM t)", ROWS),
        (
            "SELECT sum(length(m)) FROM (SELECT lag(repeat(s, 10000)) OVER (ORDER BY i) AS m FROM t)",
            (ROWS - 1) * 30_000,
        ),
        (
            "SELECT sum(n) FROM (SELECT count(repeat(s, 300 * i)) FILTER (WHERE i < 50) "
            "OVER (PARTITION BY i % 2) AS n FROM t)",
            25_000,
        ),
        ("SELECT count(*) FROM t JOIN t AS u ON repeat(t.s, 10000) = repeat(u.s, 10000)", ROWS),
        ("SELECT count(*) FROM t WHERE repeat(s, 10000) IN (SELECT repeat(s, 10000) FROM t)", ROWS),
        (
            "SELECT count(*) FROM t JOIN t AS u ON t.i % 500 = u.i % 500 AND repeat(t.s, 10000) < u.s || u.s",
            500,
        ),
        pytest.param(
            "SELECT count(*) FROM t ASOF JOIN t AS u ON t.i % 10 = u.i % 10 "
            "AND repeat(t.s, 10000) >= repeat(u.s, 10000)",
            ROWS,
            marks=pytest.mark.slow,
        ),
        (
            "SELECT count(*) FROM (SELECT repeat(s, 10000) FROM t INTERSECT SELECT s FROM t)",
            0,
        ),
    ],
)
def test_what_holds_texts_under_a_small_limit(tmp_path: Path, query: str, answer: object) -> None:
    with connection(tmp_path, "21 MiB") as con:
        assert con.sql(query).fetchall() == [(answer,)]


@pytest.mark.parametrize("before", [0, 2_000_000], ids=["in memory", "in files"])
def test_asof_joins_copy_long_texts_by_portions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """A few long texts are the partners of many rows; rows before them make a join go to files."""
    taken: list[int] = []
    plain = CpuDevice.take_or_null

    def noted(device: CpuDevice, frame: pa.RecordBatch, positions: Any) -> pa.RecordBatch:
        found = plain(device, frame, positions)
        taken.append(found.nbytes)
        return found

    monkeypatch.setattr(CpuDevice, "take_or_null", noted)
    with connection(tmp_path) as con:
        con.execute(f"CREATE TABLE many AS SELECT i FROM range(-{before}, {ROWS}) r(i)")
        con.execute("CREATE TABLE long AS SELECT i * 400 AS i, repeat(s, 30000) AS s FROM t WHERE i < 3")
        query = "SELECT length(s) FROM many ASOF JOIN long ON many.i >= long.i"
        assert con.sql(f"SELECT count(*), sum(length) FROM ({query}) q(length)").fetchall() == [
            (ROWS, 90_000 * ROWS)
        ]
        taken.clear()
        rows = con.sql("SELECT many.i, s FROM many ASOF JOIN long ON many.i >= long.i")
        assert sum(batch.num_rows for batch in rows.to_batches()) == ROWS
    assert 0 < max(taken) < 8 << 20


def test_rows_keep_their_order_by_pieces(tmp_path: Path) -> None:
    with connection(tmp_path) as con:
        rows = con.sql("SELECT i, repeat(s, 30000) AS r FROM t").to_arrow()
    assert rows["i"].to_pylist() == list(range(ROWS))
    assert rows["r"][ROWS - 1].as_py() == "999" * 30_000


@pytest.mark.parametrize(
    "query",
    [
        "SELECT repeat(s, 10000000) FROM t",
        "SELECT length(rpad(s, 30000000, 'x')) FROM t",
        "SELECT length(regexp_replace(repeat('a', 30000), 'a', repeat('b', 100000), 'g'))",
        "SELECT length(regexp_replace(repeat(s, 1000), '.', repeat('b', 100000), 'g')) FROM t",
        "SELECT length(translate(repeat('a', 5000000), 'a', '😀'))",
        "SELECT length(strftime(DATE '2020-01-01', repeat('%A', 3000000)))",
    ],
)
def test_one_text_that_is_too_large(tmp_path: Path, query: str) -> None:
    with connection(tmp_path) as con, pytest.raises(MemoryLimitError, match=r"would make .* memory_limit"):
        con.sql(query).fetchall()


def test_a_system_without_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(*given: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    with connection(tmp_path) as con:
        monkeypatch.setattr(CpuDevice, "evaluate", evaluate)
        with pytest.raises(MemoryLimitError, match=r"no more memory .*malloc of size 64 failed"):
            con.sql("SELECT i + 1 FROM t").fetchall()


@pytest.mark.parametrize("name", ["levenshtein", "damerau_levenshtein", "jaro_similarity"])
def test_long_texts_ask_whether_to_go_on(name: str) -> None:
    def cancelled() -> None:
        raise CancelledError("stop")

    text = pa.record_batch({"s": pa.array(["ab" * 100_000], TEXT)})
    other = Literal(pa.scalar("ba" * 100_000, TEXT))
    kind = pa.float64() if name == "jaro_similarity" else pa.int64()
    alike = Call(name, (ColumnRef(0, "s", TEXT), other), kind)
    with use_cancellation_check(cancelled), pytest.raises(CancelledError):
        CpuDevice().evaluate([alike], text)
