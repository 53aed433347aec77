"""What joins tell the scans of their other side: answers stay, and less is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.engine.operators.base.dynamic_filter import DynamicCondition, DynamicFilter
from bamquery.engine.operators.join import lowering, probe_first
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.plan.expressions import Cast, ColumnRef, Literal
from bamquery.plan.format import format_expression
from tests.forced_forms import forced_form

ROWS = 60_000
DAY = np.datetime64("2024-01-01")


def _facts() -> pa.Table:
    random = np.random.default_rng(7)
    ordered = np.arange(ROWS) // 10
    return pa.table(
        {
            "ordered": pa.array(ordered, pa.int64()),
            "holes": pa.array(ordered, pa.int32(), mask=random.random(ROWS) < 0.1),
            "noise": pa.array(random.integers(0, 6000, ROWS), pa.int64()),
            "real": pa.array(np.where(random.random(ROWS) < 0.05, np.nan, ordered.astype(float))),
            "money": pa.array([Decimal(int(n)).scaleb(-2) for n in ordered], pa.decimal128(12, 2)),
            "day": pa.array(DAY + ordered // 10),
            "word": pa.array([f"w{n:05}" for n in ordered], pa.large_string()),
            "code": pa.array([f"c{n // 100:03}" for n in ordered], pa.large_string()).dictionary_encode(),
            "payload": pa.array(random.random(ROWS)),
        }
    )


def _few() -> pa.Table:
    keys = [4100, 4101, 4105, None, 4300]
    return pa.table(
        {
            "small": pa.array(keys, pa.int16()),
            "real": pa.array([4100.0, float("nan"), 4101.0, None, -0.0]),
            "money": pa.array(
                [None if k is None else Decimal(k).scaleb(-2) for k in keys], pa.decimal128(9, 2)
            ),
            "day": pa.array([None if k is None else (DAY + k // 10).item() for k in keys]),
            "word": pa.array([None if k is None else f"w{k:05}" for k in keys], pa.large_string()),
            "code": pa.array(["c041", None, "c043", "none", "c041"], pa.large_string()),
        }
    )


@pytest.fixture(scope="module", params=["plain", "packed"])
def con(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    path = tmp_path_factory.mktemp("filters") / "t.bq"
    with (
        forced_form("packed") if request.param == "packed" else nullcontext(),
        bamquery.connect(str(path), device="cpu", threads=2) as made,
    ):
        made.register("facts_", _facts())
        made.register("few_", _few())
        made.sql("CREATE TABLE facts AS SELECT * FROM facts_")
        made.sql("CREATE TABLE few AS SELECT * FROM few_")
        made.sql("CREATE TABLE none AS SELECT * FROM few_ WHERE small < 0")
        made.sql("FROM facts").to_arrow()  # dictionaries are read once, whichever test asks first
        yield made


def _both(con: Connection, sql: str) -> tuple[int, int, list[str]]:
    """Bytes read with filters and without, and what the scans say; the answers are the same."""
    read, answers, shown = [], [], []
    for setting in ("on", "off"):
        con.sql(f"SET dynamic_filters = {setting}")
        result = con.sql(sql)
        table = result.to_arrow()
        answers.append(sorted(map(repr, table.to_pylist())))
        read.append(result.profile.io.bytes_read)
        for scan in result.profile.scans:
            shown += scan.details.get("dynamic_filters", []) if setting == "on" else []
            assert setting == "on" or "dynamic_filters" not in scan.details
    con.sql("RESET dynamic_filters")
    assert answers[0] == answers[1]
    return read[0], read[1], shown


KEYS = [
    ("ordered", "small"),
    ("holes", "small"),
    ("money", "money"),
    ("day", "day"),
    ("word", "word"),
    ("code", "code"),
]


@pytest.mark.parametrize(("probe", "build"), KEYS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT payload FROM facts f JOIN few d ON f.{0} = d.{1}",
        "SELECT payload FROM few d RIGHT JOIN facts f ON f.{0} = d.{1} WHERE d.small > 0",
        "SELECT payload, small FROM few d LEFT JOIN facts f ON f.{0} = d.{1}",
        "SELECT payload FROM facts f WHERE {0} IN (SELECT {1} FROM few)",
        "SELECT payload FROM facts WHERE EXISTS (FROM few d WHERE d.{1} = facts.{0} AND small > 4100)",
    ],
)
def test_less_is_read(con: Connection, sql: str, probe: str, build: str) -> None:
    few, all_, shown = _both(con, sql.format(probe, build))
    assert few < all_ / 3
    assert len(shown) == 1
    assert "keys of a join" in shown[0]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT payload, small FROM facts f LEFT JOIN few d ON f.ordered = d.small",
        "SELECT payload, small FROM facts f FULL JOIN few d ON f.ordered = d.small",
        "SELECT count(*), sum(payload) FROM facts f WHERE ordered NOT IN (SELECT small FROM few)",
        "SELECT count(*) FROM facts f ANTI JOIN few d ON f.ordered = d.small",
        "SELECT ordered IN (SELECT small FROM few) AS found, count(*) FROM facts GROUP BY found",
        "SELECT sum(payload) FROM facts f JOIN few d ON f.ordered + 1 = d.small",
    ],
)
def test_rows_without_a_partner_stay(con: Connection, sql: str) -> None:
    _, _, shown = _both(con, sql)
    assert shown == []


def test_nulls_that_are_equal(con: Connection) -> None:
    _, _, shown = _both(con, "SELECT payload FROM facts f JOIN few d ON f.holes IS NOT DISTINCT FROM d.small")
    assert "OR holes IS NULL" in shown[0]
    both, alike, shown = _both(
        con,
        "SELECT payload FROM facts f JOIN (SELECT small FROM few WHERE small IS NOT NULL) d "
        "ON f.holes IS NOT DISTINCT FROM d.small",
    )
    assert "NULL" not in shown[0]
    assert both < alike / 3
    _, _, shown = _both(
        con,
        "SELECT payload FROM facts f JOIN (SELECT small FROM few WHERE small IS NULL) d "
        "ON f.holes IS NOT DISTINCT FROM d.small",
    )
    assert shown[0].startswith("holes IS NULL")


def test_floats_by_their_bounds(con: Connection) -> None:
    _, _, shown = _both(con, "SELECT payload FROM facts f JOIN few d ON f.real = d.real")
    assert "<=" in shown[0]
    few, all_, _ = _both(
        con,
        "SELECT payload FROM facts f JOIN (SELECT real FROM few WHERE real BETWEEN 4000 AND 5000) d "
        "ON f.real = d.real",
    )
    assert few < all_


def test_nothing_held(con: Connection) -> None:
    _both(con, "SELECT payload FROM facts f JOIN none d ON f.ordered = d.small")
    _both(con, "SELECT payload FROM facts f JOIN none d ON f.holes IS NOT DISTINCT FROM d.small")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ordered, s FROM (SELECT ordered, sum(payload) s FROM facts GROUP BY ordered) f "
        "JOIN few d ON f.ordered = d.small",
        "SELECT o, s FROM (SELECT ordered AS o, count(DISTINCT noise) s FROM facts GROUP BY ordered) f "
        "JOIN few d ON f.o = d.small",
        "SELECT p FROM (SELECT ordered o, payload p FROM facts UNION ALL SELECT noise, payload FROM facts) f "
        "JOIN few d ON f.o = d.small",
        "SELECT r FROM (SELECT ordered, rank() OVER (PARTITION BY ordered ORDER BY noise) r FROM facts) f "
        "JOIN few d ON f.ordered = d.small",
        "SELECT f.noise FROM facts f JOIN facts g ON f.ordered = g.ordered JOIN few d ON g.ordered = small",
        "SELECT f.noise FROM facts f LEFT JOIN none g ON f.noise = g.small JOIN few d ON f.ordered = d.small",
        "SELECT payload FROM facts WHERE ordered IN (SELECT small FROM few) AND noise > 3000",
    ],
)
def test_through_other_operators(con: Connection, sql: str) -> None:
    few, all_, shown = _both(con, sql)
    assert few < all_
    assert shown


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT noise FROM (FROM facts ORDER BY payload LIMIT 9) f JOIN few d ON f.ordered = d.small",
        "SELECT r FROM (SELECT ordered, row_number() OVER (ORDER BY payload) r FROM facts) f "
        "JOIN few d ON f.ordered = d.small",
        "SELECT n FROM (SELECT count(*) n FROM facts) f JOIN few d ON f.n = d.small + 55900",
        "SELECT ordered, n FROM (SELECT ordered, count(*) n FROM facts GROUP BY ROLLUP (ordered)) f "
        "JOIN few d ON f.ordered = d.small",
    ],
)
def test_not_through_what_needs_all_rows(con: Connection, sql: str) -> None:
    _, _, shown = _both(con, sql)
    assert not any("keys of a join" in text for text in shown)


def test_parts_in_files(con: Connection) -> None:
    sql = (
        "SELECT count(*), sum(f.payload) FROM facts f "
        "JOIN (SELECT * FROM facts WHERE ordered < 2000) g ON f.ordered = g.ordered AND f.noise = g.noise"
    )
    con.sql("SET memory_limit = '2MB'")
    few, all_, shown = _both(con, sql)
    result = con.sql(sql)
    result.to_arrow()
    assert any(operator.details.get("partitions") for operator in result.profile.root.walk())
    con.sql("RESET memory_limit")
    assert few < all_
    assert "ordered IN (2,000 values)" in shown[0]


def test_keys_that_memory_has_no_room_for_are_not_named(con: Connection) -> None:
    sql = (
        "SELECT count(*), sum(f.payload) FROM facts f "
        "JOIN (SELECT * FROM facts WHERE ordered < 2000) g ON f.ordered = g.ordered AND f.noise = g.noise"
    )
    con.sql("SET memory_limit = '200KB'")
    few, all_, shown = _both(con, sql)
    con.sql("RESET memory_limit")
    assert few < all_
    assert "(ordered >= 0) AND (ordered <= 1999)" in shown[0]


def test_a_filter_that_saves_nothing_is_not_asked(con: Connection) -> None:
    result = con.sql("SELECT sum(f.payload) FROM facts f JOIN facts g ON f.noise = g.ordered")
    result.to_arrow()
    (scan, _) = result.profile.scans
    assert scan.rows > ROWS / 2


def test_explain_says_who_filters(con: Connection) -> None:
    text = con.sql("SELECT payload FROM facts JOIN few ON ordered = small").explain()
    assert "dynamic filters: ordered (keys of a join, CAST(small AS BIGINT))" in text


def test_conditions_take_the_type_of_the_column() -> None:
    late = DynamicFilter("a test")
    column = ColumnRef(0, "k", pa.int8())
    wide = [Literal(pa.scalar(n, pa.int64())) for n in (5, 500)]
    late.set_conditions(
        [
            DynamicCondition("in", tuple(wide)),
            DynamicCondition("less_equal", (wide[1],)),
            DynamicCondition(None),
        ]
    )
    made = [format_expression(c.as_expression(Cast(column, pa.int64()))) for c in late.conditions]
    assert made[0] == "(k IN (5))"
    assert made[2] == "(CAST(k AS BIGINT) IS NULL)"


def test_scan_profiles_have_roles(con: Connection) -> None:
    result = con.sql("SELECT payload FROM facts JOIN few ON ordered = small")
    result.to_arrow()
    scan = next(s for s in result.profile.scans if s.source == "facts")
    assert isinstance(scan, ScanProfile)
    assert scan.columns["ordered"].role == "filter, output"
    assert scan.columns["payload"].role == "output"


def test_setting_is_known(tmp_path: Path) -> None:
    with (
        bamquery.connect(str(tmp_path / "d.bq"), device="cpu", dynamic_filters=False) as made,
        pytest.raises(bamquery.SettingError, match="dynamic_filters"),
    ):
        made.sql("SET dynamic_filters = 'perhaps'")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT small FROM few WHERE EXISTS (FROM facts f WHERE f.ordered = small AND f.noise <> small)",
        "SELECT small FROM few WHERE NOT EXISTS (FROM facts f WHERE f.ordered = small AND f.noise < 3000)",
        "SELECT small FROM few SEMI JOIN facts ON ordered = small",
        "SELECT small FROM few ANTI JOIN facts ON holes = small",
        "SELECT small, EXISTS (FROM facts f WHERE f.holes = small) AS found FROM few",
        "SELECT small, (SELECT any_value(noise > 0) FROM facts f WHERE f.ordered = small) AS some FROM few",
        "SELECT word FROM few WHERE word IN (SELECT word FROM facts)",
        "SELECT code FROM few WHERE code IN (SELECT code FROM facts)",
        "SELECT day FROM few WHERE day IN (SELECT day FROM facts)",
        "SELECT money FROM few WHERE money IN (SELECT money FROM facts)",
    ],
)
def test_a_small_side_is_probed_first(con: Connection, sql: str) -> None:
    few, all_, shown = _both(con, sql)
    assert few < all_ / 2
    assert any("keys of a join" in text for text in shown)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT small FROM few WHERE small NOT IN (SELECT holes FROM facts)",
        "SELECT small, small IN (SELECT holes FROM facts) AS found FROM few",
        "SELECT ordered FROM facts ANTI JOIN few ON ordered = small",
    ],
)
def test_not_first_where_more_than_keys_counts(con: Connection, sql: str) -> None:
    _, _, shown = _both(con, sql)
    assert shown == []


@pytest.mark.parametrize(("rows", "most", "first"), [(10, 5, True), (9, 5, False), (10, 4, False)])
def test_a_side_is_probed_first_that_has_half_the_rows(
    con: Connection, monkeypatch: pytest.MonkeyPatch, rows: int, most: int, first: bool
) -> None:
    monkeypatch.setattr(lowering, "MOST_ROWS", most)
    con.sql(f"CREATE OR REPLACE TABLE rows{rows} AS SELECT i + 4100 AS n FROM range({rows}) r(i)")
    result = con.sql(f"SELECT small FROM few SEMI JOIN rows{rows} ON n = small")
    assert sorted(result.fetchall()) == [(4100,), (4101,), (4105,)]
    said = [part.details.get("reads_first") for part in result.profile.root.walk()]
    assert ("left side" in said) == first


@pytest.mark.parametrize(("most", "complete"), [(5, True), (4, False)])
def test_more_rows_than_are_kept_say_nothing_of_the_build_side(
    con: Connection, monkeypatch: pytest.MonkeyPatch, most: int, complete: bool
) -> None:
    monkeypatch.setattr(probe_first, "MOST_ROWS", most)
    few, all_, _ = _both(con, "SELECT small FROM few SEMI JOIN facts ON ordered = small")
    assert (few < all_ / 2) == complete
    assert complete or few == all_


@pytest.mark.parametrize("kind", ["ASOF", "ASOF LEFT"])
def test_an_asof_join_passes_on_what_is_of_its_left_side(con: Connection, kind: str) -> None:
    joined = f"(SELECT f.*, e.small AS before FROM facts f {kind} JOIN few e ON f.ordered >= e.small)"
    for key in ("ordered", "holes"):  # of more columns than the right side has
        few, all_, shown = _both(con, f"SELECT payload FROM {joined} a JOIN few d ON a.{key} = d.small")
        assert few < all_ / 3
        assert len(shown) == 1
    _, _, shown = _both(con, f"SELECT payload FROM {joined} a JOIN few d ON a.before = d.small")
    assert shown == []


def test_nothing_probed_first(con: Connection) -> None:
    result = con.sql("SELECT small FROM none WHERE EXISTS (FROM facts f WHERE f.ordered = small)")
    assert result.to_arrow().num_rows == 0
    few, all_, _ = _both(con, "SELECT small FROM none WHERE small IN (SELECT ordered FROM facts)")
    assert few <= all_


def test_probed_first_by_files(con: Connection) -> None:
    con.sql("SET memory_limit = '200KB'")
    _both(
        con,
        "SELECT ordered FROM facts f WHERE ordered < 900 AND EXISTS (FROM facts g WHERE g.noise = f.ordered)",
    )
    con.sql("RESET memory_limit")
