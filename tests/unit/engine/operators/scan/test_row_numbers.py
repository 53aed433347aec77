"""rowid: the number of a row in the table's version, however the scan comes by the row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bamquery
from bamquery.engine.cuda.capabilities import CUDA
from bamquery.engine.lowering import refusals
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.plan.optimizer import optimize
from tests.selection.effort import effort
from tests.stored import numbers, store

ROWS = 9000
CUTS = (1, 1025, 1026, 4096, 8000)
TABLE = numbers(ROWS)


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bamquery.Connection]:
    path: Path = tmp_path_factory.mktemp("rowid") / "db"
    with bamquery.connect(path, device="cpu") as con:
        store(con._session.database, "t", TABLE, CUTS)
        yield con


def numbers_of(con: bamquery.Connection, condition: str) -> list[int]:
    return [number for (number,) in con.sql(f"SELECT rowid FROM t WHERE {condition} ORDER BY ALL").fetchall()]


def test_numbers_are_those_of_the_rows(con: bamquery.Connection) -> None:
    found = con.sql("SELECT rowid, position FROM t ORDER BY rowid").to_arrow()
    assert found["rowid"].to_pylist() == list(range(ROWS))
    assert found["position"].to_pylist() == TABLE["position"].to_pylist()


OPERATORS = ("=", "<", "<=", ">", ">=", "<>")
PLACES = st.one_of(
    st.sampled_from([-1, 0, 1, 1023, 1024, 1025, 1026, 4095, 4096, 8999, 9000, 2**62]), st.integers(0, ROWS)
)
CONDITIONS = st.one_of(
    st.builds(lambda operator, place: f"rowid {operator} {place}", st.sampled_from(OPERATORS), PLACES),
    st.builds(lambda a, b: f"rowid BETWEEN {a} AND {b}", PLACES, PLACES),
    st.builds(
        lambda places: f"rowid IN ({', '.join(map(str, places))})", st.lists(PLACES, min_size=1, max_size=5)
    ),
    st.sampled_from(["rare = 1", "noise < 0.3", "holes IS NULL", "rowid % 7 = 3", "flag", "word = 'red'"]),
)


@pytest.mark.long
@settings(
    max_examples=effort(25, 1000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(CONDITIONS, min_size=1, max_size=3), st.sampled_from([" AND ", " OR "]), st.booleans())
def test_conditions(con: bamquery.Connection, conditions: list[str], between: str, zone_maps: bool) -> None:
    """`position` has the same values, and is stored."""
    con.set("zone_maps", zone_maps)
    condition = between.join(f"({one})" for one in conditions)
    stored = condition.replace("rowid", "position")
    expected = con.sql(f"SELECT position FROM t WHERE {stored} ORDER BY 1").fetchall()
    assert numbers_of(con, condition) == [position for (position,) in expected]


def scan_profile(relation: bamquery.Relation) -> ScanProfile:
    relation.fetchall()
    found: list[Any] = [one for one in relation.profile.root.walk() if isinstance(one, ScanProfile)]
    return found[0]


def test_vectors_without_such_a_row_are_not_read(con: bamquery.Connection) -> None:
    con.set("zone_maps", True)
    profile = scan_profile(con.sql("SELECT noise FROM t WHERE rowid = 5000"))
    whole = scan_profile(con.sql("SELECT noise FROM t WHERE rowid >= 0"))
    assert 0 < profile.columns["noise"].bytes_needed < whole.columns["noise"].bytes_needed
    assert profile.columns["noise"].vectors_pruned > whole.columns["noise"].vectors_pruned
    assert "rowid" not in profile.columns


@pytest.mark.parametrize("zone_maps", [True, False])
def test_only_the_rows_are_read_that_numbers_choose(con: bamquery.Connection, zone_maps: bool) -> None:
    """Of conditions and of keys that a join tells the scan."""
    con.set("zone_maps", zone_maps)
    chosen = [8999, 3, 1024, 1025, 3, 5000]
    con.register("chosen", pa.table({"n": pa.array(chosen, pa.int32())}))
    listed = ", ".join(map(str, chosen))
    for query, rows in (
        (f"SELECT noise FROM t WHERE rowid IN ({listed})", 5),
        ("SELECT noise FROM chosen JOIN t ON rowid = n", 5),
        ("SELECT noise FROM t WHERE rowid IN (SELECT n FROM chosen)", 5),
        ("SELECT noise FROM t WHERE rowid > 1020 AND rowid <= 1030", 10),
        ("SELECT noise FROM t WHERE rowid IN (3, 4) AND rowid IN (4, 5) AND rowid >= 4", 1),
    ):
        profile = scan_profile(con.sql(query))
        assert (profile.columns["noise"].rows_needed, profile.rows) == (rows, rows), query


def test_figures_of_all_rows_are_not_those_of_some(con: bamquery.Connection) -> None:
    con.set("zone_maps", True)
    assert con.sql("SELECT max(position), count(*) FROM t WHERE rowid < 10").fetchall() == [(9, 10)]
    assert con.sql("SELECT count(*) FROM t WHERE rowid IN (1, 8000, 9000)").fetchall() == [(2,)]
    assert con.sql("SELECT count(*) FROM t WHERE rowid IS NULL").fetchall() == [(0,)]
    assert con.sql("SELECT count(*) FROM t WHERE rowid < NULL").fetchall() == [(0,)]
    query = "SELECT position FROM t WHERE rowid > 7000 ORDER BY position LIMIT 2"
    assert con.sql(query).fetchall() == [(7001,), (7002,)]


def test_joins_limits_and_explain(con: bamquery.Connection) -> None:
    query = "SELECT count(*) FROM t JOIN (SELECT position AS p FROM t WHERE rare = 1) ON rowid = p"
    assert con.sql(query).fetchall() == con.sql("SELECT count(*) FROM t WHERE rare = 1").fetchall()
    assert con.sql("SELECT rowid FROM t ORDER BY rowid DESC LIMIT 2").fetchall() == [(8999,), (8998,)]
    assert con.sql("SELECT max(rowid), min(rowid), count(rowid) FROM t").fetchall() == [(8999, 0, 9000)]
    plan = con.sql("SELECT rowid, noise FROM t WHERE rowid > 5 AND noise < 0.5").explain()
    assert "rowid > 5" in plan


def test_each_text_sees_the_version_of_now(tmp_path: Path) -> None:
    """A plan with numbers is not kept by its text."""
    with bamquery.connect(tmp_path / "db") as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
        for rows in (1, 2, 3):
            for _ in range(3):
                assert con.sql("SELECT max(rowid) FROM t").fetchall() == [(rows - 1,)]
            con.sql("INSERT INTO t VALUES (1)")
        con.sql("OPTIMIZE t")
        assert con.sql("SELECT max(rowid) FROM t").fetchall() == [(3,)]


def test_numbers_go_on_through_fragments_of_several_ages(tmp_path: Path) -> None:
    with bamquery.connect(tmp_path / "db") as con:
        con.sql("CREATE TABLE t AS SELECT range AS a FROM range(3000)")
        con.sql(
            "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 1; INSERT INTO t SELECT range, 2 FROM range(2000)"
        )
        con.sql("ALTER TABLE t ADD COLUMN c VARCHAR; INSERT INTO t SELECT range, 3, 'x' FROM range(1000)")
        query = "SELECT b, min(rowid), max(rowid), count(*) FROM t GROUP BY b ORDER BY b"
        assert con.sql(query).fetchall() == [(1, 0, 2999, 3000), (2, 3000, 4999, 2000), (3, 5000, 5999, 1000)]
        assert con.sql("SELECT b, rowid FROM t WHERE rowid IN (2999, 3000, 5000) ORDER BY 2").fetchall() == [
            (1, 2999),
            (2, 3000),
            (3, 5000),
        ]
        assert con.sql("SELECT rowid FROM t WHERE c IS NOT NULL ORDER BY 1 LIMIT 1").fetchall() == [(5000,)]


def test_a_gpu_refuses_it_by_name(con: bamquery.Connection) -> None:
    def reasons(query: str) -> list[str]:
        plan = optimize(con.sql(query).plan_of(con._session))
        return list(refusals(plan, CUDA))

    words = "the cuda device has no rowid: its scans do not number rows; SET device = 'cpu' for this query"
    assert reasons("SELECT position FROM t WHERE rowid = 3") == [words]
    assert reasons("SELECT rowid FROM t") == [words]
    assert not reasons("SELECT position FROM t WHERE noise < 0.5 AND 'rowid' <> 'x'")
