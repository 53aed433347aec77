"""What calls over a window hold of each row is no more than the operator reckons with."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.window.row_bytes import needed_row_bytes
from bamquery.plan import nodes
from bamquery.plan.rewriting import nodes_of
from bamquery.relations.relation import Relation
from bamquery.session.result import optimized_plan
from tests.plans import window_of

ROWS = 400_000
COLUMNS = pa.schema([("v", pa.int64()), ("s", pa.large_string()), ("b", pa.large_binary())])
FEW_BEFORE = "(ORDER BY k ROWS 5 PRECEDING)"
BY_VALUE = "(ORDER BY k RANGE 5 PRECEDING)"
AROUND = "(ORDER BY k ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING EXCLUDE TIES)"
WHOLE = "(PARTITION BY g)"
SO_FAR = "(PARTITION BY g ORDER BY k)"

CALLS = [
    *(f"{call} OVER {SO_FAR}" for call in ("row_number()", "rank()", "percent_rank()", "ntile(7)")),
    *(f"{call} OVER {SO_FAR}" for call in ("lag(v)", "lead(v, 2, 5)", "first_value(v)", "nth_value(v, 3)")),
    *(f"{call} OVER {SO_FAR}" for call in ("count(*)", "sum(v)", "avg(v)", "sum(v::DOUBLE)", "max(v)")),
    *(f"{call} OVER {SO_FAR}" for call in ("sum(v::HUGEINT)", "stddev(v)", "corr(v, k)", "arg_max(v, k)")),
    *(f"sum(v) OVER {frame}" for frame in (WHOLE, FEW_BEFORE, BY_VALUE, AROUND)),
    f"sum(v) FILTER (v % 2 = 0) OVER {SO_FAR}",
    *(f"{call} OVER {FEW_BEFORE}" for call in ("max(v)", "max(v::DECIMAL(30, 2))", "corr(v, k)", "max(s)")),
    *(f"{call} OVER {FEW_BEFORE}" for call in ("median(v)", "mode(v)", "sum(DISTINCT v)", "skewness(v)")),
    *(f"{call} OVER {WHOLE}" for call in ("median(v)", "mode(v)", "count(DISTINCT v)", "entropy(v)")),
    f"count(DISTINCT v) OVER {SO_FAR}",
    f"lag(s) OVER {SO_FAR}",
    ", ".join(f"{call} OVER {SO_FAR}" for call in ("sum(v)", "avg(v)", "count(*)", "max(s)", "lag(s)")),
]


@pytest.fixture(scope="module")
def con() -> Iterator[bamquery.Connection]:
    with bamquery.connect(device="cpu", threads=1) as connection:
        connection.sql(
            "CREATE TABLE t AS SELECT i % 7 AS g, i AS k, i * 2654435761 % 1000003 AS v, "
            f"'t' || i % 1000 AS s FROM range({ROWS}) r(i)"
        )
        yield connection


@pytest.mark.parametrize("calls", CALLS)
def test_rows_take_what_is_reckoned_with(con: bamquery.Connection, calls: str) -> None:
    relation = con.sql(f"SELECT {calls} FROM t")
    plan = optimized_plan(relation._plan)
    (window,) = (node for node in nodes_of(plan) if isinstance(node, nodes.Window))
    rows = Relation(relation._session, window.child).to_arrow().combine_chunks().to_batches()[0]
    device = CpuDevice()
    frame = device.from_arrow(rows)
    general = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(general)
    pa.set_memory_pool(counted)
    tracemalloc.start()
    try:
        answer = list(device.window_portions(window, frame))
        taken = tracemalloc.get_traced_memory()[1] + counted.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(general)
    assert sum(map(device.row_count, answer)) == ROWS
    del answer
    # The operator reckons with the rows three times, of which they and a copy are not what is computed here.
    reckoned = needed_row_bytes(window.calls) + device.nbytes(frame) / ROWS
    assert reckoned / 5 < taken / ROWS < reckoned


def test_calls_are_reckoned_together() -> None:
    """Those of numbers one after the other, those of strings as long as they are wanted."""

    def reckoned(*calls: str) -> int:
        given = window_of(", ".join(f"{call} OVER ()" for call in calls), COLUMNS).calls if calls else ()
        return needed_row_bytes(given)

    assert reckoned() == 0
    small, large, answer = (
        reckoned("lag(v)"),
        reckoned("sum(v)"),
        reckoned("lag(v)", "lead(v)") - reckoned("lag(v)"),
    )
    assert answer < small < large
    assert reckoned("lag(v)", "sum(v)", "lead(v)") == large + 2 * answer
    for column in ("s", "b"):
        assert reckoned(f"lag({column})") == small
        assert reckoned(f"lag({column})", f"lead({column})", "sum(v)", "min(v)") == 2 * small + large + answer
