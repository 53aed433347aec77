"""What zone maps tell the planner: shares of rows, spans of keys, and the orders of joins that follow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.engine.sources.scan_sources import StoredTable
from bamquery.plan.cardinality import estimated_rows, remember_estimates
from bamquery.plan.expressions import Call, ColumnRef, Literal
from bamquery.plan.nodes import Plan, Scan
from bamquery.plan.optimizer import optimize
from bamquery.plan.rewriting import children
from tests.stored import stored

ROWS = 50_000


def _table() -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "ordered": pa.array(np.arange(ROWS)),
            "noise": pa.array(random.integers(0, 1000, ROWS), pa.int32()),
            "real": pa.array(random.random(ROWS), mask=random.random(ROWS) < 0.5),
            "day": pa.array(np.datetime64("2024-01-01") + np.arange(ROWS) // 500),
            "text": pa.array([f"t{n % 500:03}" for n in range(ROWS)], pa.large_string()),
            "word": pa.array(["a", "b"] * (ROWS // 2), pa.large_string()).dictionary_encode(),
            "empty": pa.array([None] * ROWS, pa.int64()),
        }
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredTable]:
    with stored(tmp_path_factory.mktemp("statistics"), _table(), cuts=[20_000]) as snapshot:
        yield StoredTable(snapshot)


def _share(source: StoredTable, column: str, function: str, *values: object) -> float | None:
    index = source.schema.get_field_index(column)
    kind = source.schema.field(index).type
    reference = ColumnRef(index, column, kind)
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    literals = [Literal(pa.scalar(value, plain)) for value in values]
    return source.share(Call(function, (reference, *literals), pa.bool_()))


@pytest.mark.parametrize(
    ("column", "function", "values", "share"),
    [
        ("ordered", "less", [5000], 0.1),
        ("ordered", "greater_equal", [45_000], 0.1),
        ("ordered", "greater", [-5], 1.0),
        ("ordered", "less", [-5], 0.0),
        ("ordered", "equal", [70], 1 / ROWS),
        ("ordered", "equal", [ROWS + 5], 0.0),
        ("ordered", "not_equal", [70], 1.0),
        ("noise", "less_equal", [99], 0.1),
        ("noise", "equal", [7], 0.001),
        ("noise", "in", [7, 8, 9, 5000], 0.003),
        ("noise", "is_not_null", [], 1.0),
        ("real", "less", [0.5], 0.25),
        ("real", "is_null", [], 0.5),
        ("real", "greater", [float("nan")], 0.0),
        ("day", "less", [np.datetime64("2024-01-11").item()], 0.1),
        ("empty", "less", [3], 0.0),
        ("empty", "equal", [None], 0.0),
    ],
)
def test_shares(source: StoredTable, column: str, function: str, values: list[object], share: float) -> None:
    found = _share(source, column, function, *values)
    assert found is not None
    assert found == pytest.approx(share, rel=0.2, abs=0.01 if share > 0.01 else 1e-3)


def test_shares_of_texts_are_guesses(source: StoredTable) -> None:
    assert _share(source, "text", "equal", "t007") == pytest.approx(0.05, rel=0.1)
    assert _share(source, "text", "equal", "zzz") == 0.0
    assert _share(source, "word", "equal", "a") is not None


def test_what_zone_maps_do_not_know(source: StoredTable) -> None:
    reference = ColumnRef(0, "ordered", pa.int64())
    assert source.share(Call("equal", (reference, reference), pa.bool_())) is None
    assert source.share(Call("like", (ColumnRef(4, "text", pa.large_string()),), pa.bool_())) is None


def test_spans(source: StoredTable) -> None:
    names = source.schema.names
    assert source.span(names.index("ordered")) == ROWS
    assert source.span(names.index("noise")) == pytest.approx(1000, rel=0.01)
    assert source.span(names.index("day")) == 100
    for name in ("real", "text", "word", "empty"):
        assert source.span(names.index(name)) is None


def test_no_rows(tmp_path: Path) -> None:
    with stored(tmp_path, _table().slice(0, 0)) as snapshot:
        source = StoredTable(snapshot)
        assert source.span(0) is None
        assert _share(source, "ordered", "less", 5) is None


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A star: 40,000 sales of 4,000 goods at 100 places in 10 regions, each in a parcel of its own."""
    random = np.random.default_rng(1)
    count = 40_000
    with bamquery.connect(str(tmp_path_factory.mktemp("orders") / "t.bq"), device="cpu") as made:
        tables = {
            "sales": {
                "good": random.integers(0, 4000, count),
                "place": random.integers(0, 100, count),
                "parcel": np.arange(count) * 4,
                "amount": random.random(count),
            },
            "goods": {"g": np.arange(4000), "colour": np.arange(4000) % 50},
            "places": {"p": np.arange(100), "region": np.arange(100) % 10},
            "regions": {"r": np.arange(10), "size": np.arange(10)},
            "parcels": {"id": np.arange(count) * 4, "weight": random.integers(0, 1000, count)},
        }
        for name, columns in tables.items():
            made.register(f"{name}_", pa.table(columns))
            made.sql(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
        yield made


def _sources(plan: Plan) -> list[str]:
    """In the order in which they are joined."""
    if isinstance(plan, Scan):
        return [plan.source.name]
    return [name for child in children(plan) for name in _sources(child)]


def _held(con: Connection, sql: str) -> list[str]:
    """Names of scans, those of held sides after those of their probed sides."""
    lines = con.sql(sql).explain().splitlines()
    return [line.split("Scan ")[1].split(" ")[0] for line in lines if "Scan " in line]


@pytest.mark.parametrize(
    ("condition", "first"),
    [("colour = 7", "goods"), ("size = 3", "places"), ("weight < 5", "parcels")],
)
def test_what_leaves_the_fewest_rows_is_joined_first(con: Connection, condition: str, first: str) -> None:
    sql = (
        "SELECT sum(amount) FROM sales, parcels, goods, places, regions "
        f"WHERE good = g AND place = p AND region = r AND parcel = id AND {condition}"
    )
    assert _sources(optimize(con.sql(sql)._plan))[:2] == ["sales", first]
    assert "Nested loop" not in con.sql(sql).explain()


def test_the_side_that_conditions_make_small_is_held(con: Connection) -> None:
    assert _held(con, "SELECT 1 FROM sales JOIN parcels ON parcel = id WHERE amount < 0.01") == [
        "parcels",
        "sales",
    ]
    assert _held(con, "SELECT 1 FROM parcels JOIN sales ON parcel = id WHERE weight < 10") == [
        "sales",
        "parcels",
    ]


def test_guesses_of_joins_and_groups(con: Connection) -> None:
    def guess(sql: str) -> float:
        return estimated_rows(optimize(con.sql(sql)._plan))

    assert guess("SELECT 1 FROM sales JOIN goods ON good = g") == pytest.approx(40_000, rel=0.1)
    assert guess("SELECT 1 FROM sales JOIN goods ON good = g WHERE g < 400") == pytest.approx(4000, rel=0.2)
    assert guess("SELECT 1 FROM sales JOIN parcels ON parcel = id") == pytest.approx(40_000, rel=0.1)
    assert guess("SELECT place, count(*) FROM sales GROUP BY place") == pytest.approx(100, rel=0.1)
    assert guess("SELECT 1 FROM sales WHERE good IN (SELECT g FROM goods WHERE g < 400)") < 8000


@pytest.mark.parametrize(
    ("column", "bounds", "share"),
    [
        ("ordered", [("greater_equal", 20_000), ("less", 25_000)], 0.1),
        ("ordered", [("greater", 30_000), ("less", 20_000)], 0.0),
        ("noise", [("greater_equal", 400), ("less_equal", 449)], 0.05),
        ("noise", [("greater_equal", -50), ("less_equal", 499), ("less", 100)], 0.1),
        ("real", [("greater", 0.25), ("less", 0.5)], 0.125),
    ],
)
def test_bounds_of_one_column_are_one_condition(
    source: StoredTable, column: str, bounds: list[tuple[str, object]], share: float
) -> None:
    index = source.schema.get_field_index(column)
    kind = source.schema.field(index).type
    parts = tuple(
        Call(name, (ColumnRef(index, column, kind), Literal(pa.scalar(value, kind))), pa.bool_())
        for name, value in bounds
    )
    assert source.share(Call("and", parts, pa.bool_())) == pytest.approx(share, abs=0.01)
    scan = Scan(source, (index,), parts)
    assert estimated_rows(scan) == pytest.approx(max(share * ROWS, 1.0), abs=0.01 * ROWS)
    with remember_estimates():
        assert estimated_rows(scan) == estimated_rows(scan)
