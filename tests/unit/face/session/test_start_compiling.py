"""Which kernels a device may begin with before a statement's rows come, and what is known of their nulls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.settings import Settings
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression
from bamquery.plan.format import format_expression
from bamquery.session import result


class Recorder:
    """A device that compiles."""

    def __init__(self) -> None:
        self.begun: dict[str, str] = {}

    def start_compiling(self, expressions: Sequence[Expression], nullable: Sequence[bool | None]) -> None:
        self.begun[", ".join(map(format_expression, expressions))] = _letters(nullable)

    def start_compiling_filter(self, predicate: Expression, nullable: Sequence[bool | None]) -> None:
        self.begun[f"WHERE {format_expression(predicate)}"] = _letters(nullable)

    def start_compiling_aggregates(
        self, calls: Sequence[AggregateCall], nullable: Sequence[bool | None], *, by_keys: bool
    ) -> None:
        how = "by keys" if by_keys else "of all"
        self.begun[", ".join(call.function for call in calls) + f" {how}"] = _letters(nullable)

    def gathers_in_one_pass(self, calls: Sequence[AggregateCall]) -> bool:
        return not any(call.function == "min" for call in calls)


def _letters(nullable: Sequence[bool | None]) -> str:
    return "".join({True: "n", False: "-", None: "?"}[one] for one in nullable)


@pytest.fixture
def con(tmp_path: Any) -> Iterator[bamquery.Connection]:
    with bamquery.connect(tmp_path / "some.bq", device="cpu") as opened:
        opened.sql("CREATE TABLE t AS SELECT i AS a, NULLIF(i, 3) AS b, i % 7 AS k FROM range(50) r(i)")
        opened.sql("CREATE TABLE s AS SELECT i AS k, NULLIF(i, 2) AS v, i AS w FROM range(7) r(i)")
        yield opened


def begun(con: bamquery.Connection, sql: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    lowered: list[Operator[Any]] = []
    lower = result.lower

    def remember(*given: Any) -> Operator[Any]:
        lowered.append(lower(*given))
        return lowered[-1]

    monkeypatch.setattr(result, "lower", remember)
    con.sql(sql).fetchall()
    recorder: Any = Recorder()
    result._start_compiling(lowered[-1], recorder)
    found: dict[str, str] = recorder.begun
    return found


@pytest.mark.parametrize(
    ("calls", "wanted"),
    [
        ("sum(p), sum(p * k)", {"sum, sum by keys": "-n-"}),
        ("min(p), sum(p * k)", {"min, sum by keys": "-?", "k, (a + b)": "-n-"}),
    ],
)
def test_what_is_computed_before_is_the_aggregates_where_one_pass_does_all(
    con: bamquery.Connection, calls: str, wanted: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"SELECT k, {calls} FROM (SELECT k, a + b AS p FROM t) GROUP BY k"
    found = begun(con, sql, monkeypatch)
    assert found == wanted


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT a + b * 2 FROM t", {"(a + (b * 2))": "-n"}),
        ("SELECT sum(a), max(b) FROM t WHERE a < 9", {"sum, max of all": "-n"}),
        ("SELECT k, sum(a + b) FROM t GROUP BY k", {"sum by keys": "-n-"}),
        (
            "SELECT sum(a) FROM t JOIN s USING (k) WHERE a + w > 9 HAVING sum(a) > 3",
            {"sum of all": "----", "WHERE (sum(a) > 3)": "?"},
        ),
        ("SELECT a + w + v FROM t JOIN s USING (k)", {"((a + w) + v)": "---n-"}),
        ("SELECT a + w FROM t LEFT JOIN s USING (k)", {"(a + w)": "--nn"}),
        ("SELECT a + w FROM t RIGHT JOIN s ON t.k = s.k AND a > 3", {"(a + w)": "nn--"}),
        ("SELECT a + w FROM t FULL JOIN s USING (k)", {"(a + w)": "nnnn"}),
        ("SELECT a + 1 FROM t WHERE k IN (SELECT k FROM s)", {"(a + 1)": "--"}),
        ("SELECT a + 1 FROM (SELECT a FROM t UNION ALL SELECT a FROM t)", {"(a + 1)": "?"}),
    ],
)
def test_what_is_begun_with(
    con: bamquery.Connection, sql: str, wanted: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = begun(con, sql, monkeypatch)
    assert {name: found.get(name) for name in wanted} == wanted, found


class Compiling(CpuDevice):
    """The CPU, if it were no host and compiled."""

    capabilities = replace(CpuDevice.capabilities, on_host=False)

    def __init__(self) -> None:
        super().__init__()
        self.recorder = Recorder()
        self.start_compiling = self.recorder.start_compiling
        self.start_compiling_filter = self.recorder.start_compiling_filter
        self.start_compiling_aggregates = self.recorder.start_compiling_aggregates


def test_it_is_begun_when_a_statement_is_lowered() -> None:
    device, a = Compiling(), ColumnRef(0, "a", pa.int64())
    rows = nodes.Values(pa.record_batch({"a": pa.array([1, 2])}))
    plan = nodes.Project(rows, (Call("add", (a, a), pa.int64()),), ("x",))
    result._lower_plan(plan, device, Settings())
    assert device.recorder.begun == {"(a + a)": "?"}
    result._lower_plan(plan, CpuDevice(), Settings())
