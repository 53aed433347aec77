"""WITH RECURSIVE: steps that are not asked for, and being stopped."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from typing import Any

import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.project import Project
from bamquery.engine.operators.recursion.recursion import Recursion
from bamquery.engine.operators.scan.recursive_table_scan import RecursiveTableScan
from bamquery.engine.operators.values import Values
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.sources.scan_sources import RecursiveTableSource
from bamquery.plan.expressions import Call, ColumnRef, Literal
from bamquery.plan.nodes import Field, Scan
from tests.unit.engine.operators.recursion.forms import COLUMNS, recursion_details, without_small_steps

ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT n FROM t"


def test_limit_stops_it() -> None:
    with bamquery.connect(device="cpu") as con:
        assert con.sql(f"{ENDLESS} LIMIT 3").fetchall() == [(1,), (2,), (3,)]


def test_cancel() -> None:
    with bamquery.connect(device="cpu") as con:
        result = con.sql(f"SELECT count(*) FROM ({ENDLESS})").run()
        threading.Timer(0.2, result.cancel).start()
        with pytest.raises(bamquery.CancelledError):
            list(result)


def test_the_profile_counts_all_steps() -> None:
    with bamquery.connect(device="cpu") as con:
        rows = con.sql(
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 50) FROM t"
        )
        rows.fetchall()
        (found,) = [part for part in rows.profile.root.walk() if part.name == "Recursion"]
        assert found.details["steps"] == 50
        assert [child.rows for child in found.children] == [1, 49]


class Step(Operator[Any]):
    """A row a step, up to a number of steps; notes what it may hold."""

    reservations = 1

    def __init__(self, rooms: list[int]) -> None:
        super().__init__((Field("n", pa.int64()),), (), OperatorProfile("Step"))
        self._rooms = rooms

    def produce(self, context: ExecutionContext[Any]) -> Generator[Any, None, None]:
        """The row."""
        with context.memory.reservation("JOIN") as memory:
            self._rooms.append(memory.room)
            if len(self._rooms) < 5:
                yield context.device.from_arrow(pa.record_batch({"n": pa.array([1])}))


def test_each_step_has_memory_even_where_others_take_what_they_can() -> None:
    rooms: list[int] = []
    first: Values[Any] = Values(pa.record_batch({"n": pa.array([1])}), (Field("n", pa.int64()),))
    rows: RecursiveTableSource[Any] = RecursiveTableSource("t", pa.schema([("n", pa.int64())]))
    recursion: Recursion[Any] = Recursion(first, lambda: Step(rooms), rows, (), first.fields)
    with ExecutionContext(CpuDevice()) as context:
        context.memory.announce(1 + recursion.all_reservations(), 2)
        with context.memory.reservation("ORDER BY") as outside:
            for _ in recursion.frames(context):
                outside.resize(outside.room)
    part = rooms[0]
    assert rooms == [part] * 5
    assert part > 1 << 20


SMALL = [
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT n + 1, s || 'b' FROM t WHERE n < 50",
    "SELECT 1 AS n, 'a' AS s UNION SELECT n + n % 7, s FROM t WHERE n < 50",
    "SELECT 1 AS n, 'a' AS s UNION SELECT (n * 7 + 1) % 1000, coalesce(NULL, s) FROM t",
    "SELECT 0 AS n, NULL::VARCHAR AS s UNION SELECT to_node, name FROM t JOIN edges ON n = from_node",
    "SELECT 0 AS n, NULL::VARCHAR AS s UNION ALL SELECT to_node, name FROM edges JOIN t ON n = from_node",
    "SELECT 0 AS n, NULL::VARCHAR AS s UNION ALL SELECT to_node, name FROM edges JOIN t "
    "ON n IS NOT DISTINCT FROM from_node AND from_node + n < 70 IS NOT FALSE",
    "SELECT 1 AS n, DATE '2000-01-31' AS s UNION ALL SELECT n + 1, (s + INTERVAL 1 MONTH)::DATE FROM t "
    "WHERE year(s) < 2002",
    "SELECT 1 AS n, TIMESTAMP '1969-12-30 12:00:00' AS s UNION ALL SELECT n + 1, "
    "s + INTERVAL '1 day 7 hours' FROM t WHERE s - INTERVAL 1 MONTH < '1970-01-02' OR month(s) = 2",
    "SELECT 1 AS n, DATE '2000-01-31' AS s UNION SELECT s - DATE '2000-01-01', s + 1 FROM t WHERE n < 50",
    "SELECT 1 AS n, 'ab' AS s UNION ALL SELECT n + length(s), "
    "upper(replace(substr(s || 'ab', 1, 9), 'ba', 'b')) FROM t WHERE n < 50",
    "SELECT 1 AS n, 1::HUGEINT AS s UNION ALL SELECT max(n) + 1, sum(n + s) FROM t HAVING max(n) < 50",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) v(n, s) UNION ALL "
    "SELECT (max(n) + count(*) + count(s))::INTEGER, "
    "max(s) FROM t WHERE n < 90 GROUP BY s HAVING avg(n) > 0",
    "SELECT 0 AS n, NULL::VARCHAR AS s UNION SELECT n + 1, name FROM t "
    "LEFT JOIN edges ON n = from_node WHERE n < 30",
    "SELECT 0 AS n, NULL::VARCHAR AS s UNION SELECT n + 1, name FROM edges "
    "RIGHT JOIN t ON n = from_node AND name > 'to5' WHERE n < 30",
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT n + 1, s FROM t SEMI JOIN edges ON n = from_node WHERE n < 30",
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT n + 1, s FROM t "
    "ANTI JOIN edges ON n = to_node - 10 WHERE n < 30",
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT p.n + 1, q.s FROM t p JOIN t q ON p.n = q.n WHERE p.n < 30",
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT (SELECT max(n) + 1 FROM t), s FROM t WHERE n < 30",
    "SELECT 0 AS n, 'a' AS s UNION ALL SELECT n + 1, "
    "(SELECT max(name) FROM edges WHERE from_node = n % 9) FROM t "
    "WHERE n < 30 AND EXISTS (SELECT 1 FROM edges WHERE from_node = n)",
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT DISTINCT n + 1, s FROM t JOIN three ON i + n > 2 WHERE n < 7",
    "SELECT NULL::INTEGER AS n, 'a' AS s UNION SELECT n, CASE WHEN s = 'a' THEN NULL ELSE 'a' END FROM t",
    "SELECT 0 AS n, NULL::VARCHAR AS s UNION SELECT n + 1, name FROM t "
    "JOIN edges ON sqrt(n) = sqrt(from_node) AND ceil(n / 2) = floor(n / 2)",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (2, NULL)) v(n, s) UNION ALL SELECT n + count(*) OVER (), "
    "lag(s, 1, 'none') OVER (ORDER BY n DESC, s NULLS FIRST) FROM t WHERE n < 30",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (2, NULL)) v(n, s) UNION ALL "
    "SELECT (rank() OVER (PARTITION BY s ORDER BY n) + max(n) OVER (PARTITION BY s))::INTEGER, "
    "s FROM t WHERE n < 30",
]
LEFT_TO_A_DEVICE = [
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT n + 1, s FROM t JOIN three ON true WHERE n < 7",
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT n + 1, s || s FROM t WHERE n < 15",
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT n + 1, s FROM t JOIN edges ON to_node + n > 80 WHERE n < 4",
    "SELECT 1 AS n, DATE '9999-12-30' AS s UNION ALL SELECT n + 1, s + 1 FROM t WHERE n < 5",
    "SELECT 1 AS n, 'é' AS s UNION ALL SELECT n + 1, upper(s) FROM t WHERE n < 5",
    "SELECT 1 AS n, 'a' AS s UNION SELECT k, s FROM t JOIN keys ON k // 200 = n // 200 + 1",
    "SELECT 1 AS n, 'a' AS s UNION ALL SELECT n + sum(n) OVER (ORDER BY n), s FROM t WHERE n < 9",
]


@pytest.fixture
def tables() -> Iterator[bamquery.Connection]:
    with bamquery.connect(device="cpu") as con:
        con.sql(
            "CREATE TABLE edges AS SELECT i // 3 AS from_node, i // 3 + 20 + i % 3 AS to_node,"
            "'to' || i AS name "
            "FROM range(180) r(i) UNION ALL SELECT NULL, 3, 'none' UNION ALL SELECT 20, NULL, 'no'"
        )
        con.sql("CREATE TABLE three AS SELECT i FROM range(3) r(i)")
        con.sql("CREATE TABLE keys AS SELECT i AS k FROM range(2000) r(i)")
        yield con


@pytest.mark.parametrize("query", [*SMALL, *LEFT_TO_A_DEVICE])
def test_rows_computed_by_python_are_the_device_s(
    query: str, tables: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"WITH RECURSIVE t(n, s) AS ({query}) SELECT n, s, count(*) FROM t GROUP BY ALL ORDER BY ALL"
    found = tables.sql(sql)
    mine = found.fetchall()
    (part,) = [part for part in found.profile.root.walk() if part.name == "Recursion"]
    if query in SMALL:
        assert part.details["by_row"] == part.details["steps"]
    else:
        assert part.details.get("by_row", 0) < part.details["steps"]
    without_small_steps(monkeypatch)
    again = tables.sql(sql)
    assert again.fetchall() == mine
    assert len(mine) > 1
    (part,) = [part for part in again.profile.root.walk() if part.name == "Recursion"]
    assert "by_row" not in part.details


MANY = "SELECT i::INTEGER AS n, CASE WHEN i % 3 > 0 THEN i END AS s FROM range(100) r(i)"
BY_COLUMN = [
    "UNION ALL SELECT n + 1, s + n * 2 FROM t WHERE n < 103",
    "UNION ALL SELECT n + 1, s FROM t WHERE s IS NOT NULL AND n + s < 160",
    "UNION ALL SELECT n * 3 % 1000, coalesce(s, n) FROM t WHERE n % 7 <> 3 AND n > 0",
    "UNION ALL SELECT n + 1, CASE WHEN s < n OR s IS NULL THEN n // 2 ELSE -s END FROM t WHERE n < 120",
    "UNION ALL SELECT m, s FROM (SELECT n + 1 AS m, s - n AS s FROM t WHERE n < 110) WHERE m <> 50",
    "UNION ALL SELECT n, NULL FROM t WHERE s IS DISTINCT FROM NULL",
    "UNION SELECT n, s + 1 FROM t WHERE s < 30",
    "UNION SELECT (n * 5 + 1) % 256, NULLIF(n, 7) FROM t",
    "UNION SELECT n // 2, s // 3 FROM t",
    "UNION SELECT n - 1, 0 FROM t WHERE n > 0",
]


@pytest.mark.parametrize("step", BY_COLUMN)
def test_columns_computed_without_frames_are_the_device_s(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = f"WITH RECURSIVE t AS ({MANY} {step}) SELECT n, s, count(*) FROM t GROUP BY ALL ORDER BY ALL"
    with bamquery.connect(device="cpu") as con:
        rows = con.sql(sql)
        mine = rows.fetchall()
        details = recursion_details(rows)
        assert details["by_column"] == details["steps"] > 1
        without_small_steps(monkeypatch)
        again = con.sql(f"{sql} ")
        assert again.fetchall() == mine
        assert {"by_column", "by_row"}.isdisjoint(recursion_details(again))
        assert recursion_details(again)["steps"] == details["steps"]


@pytest.mark.parametrize(
    ("kind", "first", "step"),
    [
        ("DOUBLE", "i / 4", "sqrt(n) + 1, s + 1 FROM t WHERE s < 5 AND n < 4"),
        ("DATE", "DATE '2000-01-01' + i::INTEGER", "n + 1, s FROM t WHERE n < DATE '2000-02-01'"),
        (
            "TIMESTAMP",
            "TIMESTAMP '1999-12-31 12:00:00' + i * INTERVAL 1 HOUR",
            "(n - INTERVAL '1 day 1 second')::DATE, s FROM t WHERE n > DATE '1999-12-20'",
        ),
        ("BOOLEAN", "i % 2 = 0", "NOT n, s + 1 FROM t WHERE s < 50 AND (n OR s IN (1, 2, NULL))"),
    ],
)
@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
def test_other_types_of_columns(
    kind: str, first: str, step: str, union: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = (
        f"WITH RECURSIVE t(n, s) AS (SELECT ({first})::{kind}, i // 2 FROM range(20) r(i) {union} "
        f"SELECT {step}) SELECT n, s, count(*) FROM t GROUP BY ALL ORDER BY ALL"
    )
    with bamquery.connect(device="cpu") as con:
        rows = con.sql(sql)
        mine = rows.fetchall()
        assert recursion_details(rows)["by_column"] == recursion_details(rows)["steps"] > 1
        without_small_steps(monkeypatch)
        assert con.sql(f"{sql} ").fetchall() == mine


def test_columns_that_cannot_go_on_are_left_to_the_device() -> None:
    steps = "SELECT i::TINYINT AS n FROM range(20) r(i) {} SELECT n + 20::TINYINT FROM t"
    for union in ("UNION", "UNION ALL"):
        with bamquery.connect(device="cpu") as con:
            endless = f"WITH RECURSIVE t AS ({steps.format(union)}) FROM t"
            some = con.sql(f"{endless} LIMIT 120")
            assert some.fetchall() == [(n,) for n in range(120)]
            with pytest.raises(bamquery.ExecutionError, match="TINYINT overflow: 108 "):
                con.sql(endless).fetchall()


def test_what_columns_gave_is_known_to_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{COLUMNS}.MOST_CODED", 300)
    with bamquery.connect(device="cpu") as con:
        steps = "SELECT i AS n FROM range(16) r(i) UNION SELECT (n * 5 + 16) % 4096 FROM t"
        found = con.sql(f"WITH RECURSIVE t AS ({steps}) SELECT count(*), count(DISTINCT n) FROM t")
        ((rows, different),) = found.fetchall()
        assert rows == different > 300
        details = recursion_details(found)
        assert 0 < details["by_column"] < details["steps"]


def test_columns_beyond_the_memory_limit_are_left_to_operators() -> None:
    with bamquery.connect(device="cpu") as con:
        con.sql("SET memory_limit = '24MB'")
        steps = "SELECT i AS n, 0 AS s FROM range(8_000) r(i) UNION SELECT n, s + 1 FROM t WHERE s < 60"
        found = con.sql(f"WITH RECURSIVE t AS ({steps}) SELECT count(*), sum(n), max(s) FROM t")
        assert found.fetchall() == [(61 * 8_000, 61 * 31_996_000, 60)]
        details = recursion_details(found)
        assert 0 < details["by_column"] < details["steps"]


@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
def test_cancel_among_columns(union: str) -> None:
    with bamquery.connect(device="cpu") as con:
        steps = f"SELECT i AS n FROM range(100) r(i) {union} SELECT n + 100 FROM t"
        result = con.sql(f"WITH RECURSIVE t AS ({steps}) SELECT count(*) FROM t").run()
        threading.Timer(0.2, result.cancel).start()
        with pytest.raises(bamquery.CancelledError):
            list(result)


def test_each_step_by_column_looks_for_a_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows it gives: as many steps as a frame has rows may go by before one is made."""
    looks = 0
    original = ExecutionContext.check_cancelled

    def counted(context: ExecutionContext[Any]) -> None:
        nonlocal looks
        looks += 1
        original(context)

    monkeypatch.setattr(ExecutionContext, "check_cancelled", counted)
    with bamquery.connect(device="cpu") as con:
        first, step = (
            "SELECT i, 0 AS n FROM range(50) r(i)",
            "SELECT i, n + 1 FROM t WHERE i < 1 AND n < 3000",
        )
        found = con.sql(f"WITH RECURSIVE t AS ({first} UNION ALL {step}) SELECT count(*) FROM t")
        assert found.fetchall() == [(3050,)]
        (part,) = [part for part in found.profile.root.walk() if part.name == "Recursion"]
        assert part.details["by_column"] > 3000
        assert looks > 3000


def test_rows_before_an_error_are_not_lost() -> None:
    with bamquery.connect(device="cpu") as con:
        endless = (
            "WITH RECURSIVE t AS (SELECT 120::TINYINT AS n UNION ALL SELECT n + 1::TINYINT FROM t) FROM t"
        )
        assert con.sql(f"{endless} LIMIT 8").fetchall() == [(n,) for n in range(120, 128)]
        with pytest.raises(bamquery.ExecutionError, match="TINYINT overflow: 127"):
            con.sql(endless).fetchall()


def test_more_rows_than_python_keeps_are_told_apart_by_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bamquery.engine.operators.recursion.by_row.recursion._MOST_SEEN", 100)
    with bamquery.connect(device="cpu") as con:
        steps = "SELECT 1 AS n UNION SELECT (n * 5 + 1) % 256 FROM t"  # comes to each number below 256
        found = con.sql(f"WITH RECURSIVE t AS ({steps}) SELECT count(*), sum(n) FROM t")
        assert found.fetchall() == [(256, 255 * 128)]
        (part,) = [part for part in found.profile.root.walk() if part.name == "Recursion"]
        assert (part.details["by_row"], part.details["steps"]) == (100, 256)


def test_small_steps_make_few_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    original = CpuDevice.from_arrow

    def counted(self: CpuDevice, batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal made
        made += 1
        return original(self, batch)

    monkeypatch.setattr(CpuDevice, "from_arrow", counted)
    with bamquery.connect(device="cpu") as con:
        steps = "SELECT 1 AS n UNION SELECT n + 1 FROM t WHERE n < 2000"
        assert con.sql(f"WITH RECURSIVE t AS ({steps}) SELECT sum(n) FROM t").fetchall() == [(2001000,)]
    assert 1 <= made < 20


def test_steps_without_state_are_made_once() -> None:
    made = 0

    def make() -> Operator[Any]:
        nonlocal made
        made += 1
        below = Call("less", (n, Literal(pa.scalar(20, pa.int64()))), pa.bool_())
        scan = RecursiveTableScan(Scan(rows, (0,), (below,)), rows)
        more = Call("add", (n, Literal(pa.scalar(1, pa.int64()))), pa.int64())
        return Project(scan, (more,), first.fields)

    n = ColumnRef(0, "n", pa.int64())
    first: Values[Any] = Values(pa.record_batch({"n": pa.array([1])}), (Field("n", pa.int64()),))
    rows: RecursiveTableSource[Any] = RecursiveTableSource("t", pa.schema([("n", pa.int64())]))
    recursion: Recursion[Any] = Recursion(first, make, rows, (), first.fields)
    with ExecutionContext(CpuDevice()) as context:
        context.memory.announce(1 + recursion.all_reservations(), 2)
        found = [row for frame in recursion.frames(context) for row in frame.column(0).to_pylist()]
    assert found == list(range(1, 21))
    assert made == 1
    assert recursion.children[1].profile.rows == 19


KEPT = {
    "left": "SELECT n + 1, e.name FROM t LEFT JOIN edges e ON n = from_node WHERE n < 30",
    "right": "SELECT n + 1, e.name FROM edges e RIGHT JOIN t ON n = from_node WHERE n < 30",
    "full": "SELECT n + 1, e.name FROM t FULL JOIN edges e ON n = from_node WHERE n < 30",
    "inner": "SELECT n + 1, e.name FROM t JOIN edges e ON sqrt(n) = sqrt(from_node) WHERE n < 30",
    "semi": "SELECT n + 1, s FROM t WHERE n < 30 AND sqrt(n) IN (SELECT sqrt(from_node) FROM edges)",
    "anti": "SELECT n + 1, s FROM t WHERE n < 30 AND sqrt(n) NOT IN "
    "(SELECT sqrt(to_node) FROM edges WHERE to_node > 0)",
    "mark": "SELECT n + 1, s FROM t WHERE n < 30 "
    "AND (sqrt(n) IN (SELECT sqrt(from_node) FROM edges)) IS NOT FALSE",
    "single": "SELECT n + 1, (SELECT max(name) FROM edges WHERE from_node = n % 9) FROM t WHERE n < 30",
    "no keys": "SELECT n + 1, s FROM t JOIN edges e ON from_node + n * sqrt(n) < 40 WHERE n < 4",
    "no rows": "SELECT n + 1, name FROM t LEFT JOIN (FROM edges WHERE from_node < 0) "
    "ON n = to_node WHERE n < 30",
}


@pytest.mark.parametrize("kind", KEPT)
def test_what_a_step_joins_is_read_once(
    kind: str, tables: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = (
        f"WITH RECURSIVE t(n, s) AS (SELECT 1, 'a' UNION {KEPT[kind]}) "
        "SELECT n, s, count(*) FROM t GROUP BY ALL ORDER BY ALL"
    )
    without_small_steps(monkeypatch)
    rows = tables.sql(sql)
    found = rows.fetchall()
    (part,) = [part for part in rows.profile.root.walk() if part.name == "Recursion"]
    assert part.details["steps"] > 1
    assert sum(scan.rows for scan in rows.profile.scans) <= 182
    monkeypatch.setattr("bamquery.engine.operators.join.join.Join.keep_build", lambda join: None)
    again = tables.sql(f"{sql} ")
    assert again.fetchall() == found
    assert len(found) > 1


def test_what_does_not_fit_is_read_for_each_step() -> None:
    with bamquery.connect(device="cpu") as con:
        con.sql("CREATE TABLE wide AS SELECT i, repeat('x', 200) || i AS s FROM range(40_000) r(i)")
        con.sql("SET memory_limit = '12MB'")
        sql = (
            "WITH RECURSIVE t(n, s) AS (SELECT 1, '' UNION ALL SELECT n + 1, w.s FROM t LEFT JOIN wide w "
            "ON sqrt(n) = sqrt(w.i) WHERE n < 4) SELECT n, right(s, 2) FROM t ORDER BY n"
        )
        rows = con.sql(sql)
        assert rows.fetchall() == [(1, ""), (2, "x1"), (3, "x2"), (4, "x3")]
        assert rows.profile.spilled
