"""What a profile records of each vector."""

import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.profiling.vector_map import VectorState, state_runs

VECTOR = 1024


@pytest.fixture
def con(tmp_path):
    with bamquery.connect(tmp_path / "db", threads=1) as con:
        con.load("t", pa.table({"x": range(10 * VECTOR + 1), "y": [str(n) for n in range(10 * VECTOR + 1)]}))
        yield con


def map_of(con, text):
    relation = con.sql(text)
    relation.fetchall()
    (scan,) = relation.profile.scans
    return scan.vector_map


def test_nothing_is_recorded_unless_asked_for(con):
    assert map_of(con, "SELECT y FROM t WHERE x < 10") is None


def test_pruned_streamed_and_picked(con):
    con.set("profile_vectors", True)
    con.set("strategy", "blocks")
    found = map_of(
        con, f"SELECT y FROM t WHERE x >= {3 * VECTOR} AND x < {5 * VECTOR} AND x % 2048 = 5000 % 2048"
    )
    assert found.columns == ("x", "y")
    assert state_runs(found.states("x")) == [("pruned", 3), ("streamed", 2), ("pruned", 6)]
    # 5000 % 2048 = 904, a row of the fifth vector only
    assert state_runs(found.states("y")) == [("pruned", 3), ("passed_over", 1), ("blocks", 1), ("pruned", 6)]


def test_what_a_limit_left_alone(con):
    con.set("profile_vectors", True)
    con.load("u", pa.table({"x": range(100 * VECTOR)}))
    found = map_of(con, "SELECT x FROM u LIMIT 1")
    states = found.states("x")
    assert states[0] == VectorState.STREAMED
    assert states[-1] == VectorState.NOT_REACHED


def test_several_fragments_and_the_dictionary_form(con):
    con.set("profile_vectors", True)
    con.load("t", pa.table({"x": [-1] * VECTOR, "y": ["a"] * VECTOR}), if_exists="append")
    found = map_of(con, "SELECT x FROM t WHERE x = -1").to_dict()
    assert [fragment["vectors"] for fragment in found["fragments"]] == [11, 1]
    assert found["columns"] == {"x": [("pruned", 11), ("streamed", 1)]}


def test_added_columns_are_scans_of_their_own(con):
    con.set("profile_vectors", True)
    con.sql("ALTER TABLE t ADD COLUMN z INTEGER DEFAULT 5")
    con.load("t", pa.table({"x": [7], "y": ["b"], "z": [6]}), if_exists="append")
    relation = con.sql("SELECT x, z FROM t WHERE x = 7")
    assert relation.fetchall() == [(7, 5), (7, 6)]
    maps = [scan.vector_map for scan in relation.profile.scans]
    assert sum(len(found.states("x")) for found in maps) >= 12
