"""`Relation.take`: rows of a table by their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import CatalogError
from tests.stored import numbers, store

TABLE = numbers(3000)


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bamquery.Connection]:
    path: Path = tmp_path_factory.mktemp("take") / "db"
    with bamquery.connect(path, device="cpu") as con:
        store(con._session.database, "t", TABLE, (1, 1025, 1026))
        yield con


@pytest.mark.parametrize("zone_maps", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_rows_come_in_the_order_given(con: bamquery.Connection, seed: int, zone_maps: bool) -> None:
    con.set("zone_maps", zone_maps)
    rows = np.random.default_rng(seed).integers(0, 3000, [0, 1, 700, 5000][seed])
    taken = con.table("t").take(rows, ["text", "POSITION", "holes"]).to_arrow()
    assert taken.equals(TABLE.select(["text", "position", "holes"]).take(pa.array(rows, pa.int64())))


@pytest.mark.parametrize(
    "rows",
    [[7, 0, 7], (7, 0, 7), np.array([7, 0, 7], "u1"), pa.array([7, 0, 7]), pa.chunked_array([[7, 0], [7]])],
)
def test_numbers_may_be_of_any_kind(con: bamquery.Connection, rows: Any) -> None:
    assert con.table("t").take(rows, ["position"]).fetchall() == [(7,), (0,), (7,)]
    assert con.table("t").take(range(2, 0, -1), ["position"]).fetchall() == [(2,), (1,)]


def test_columns_may_be_computed_and_called_rowid(con: bamquery.Connection) -> None:
    table = con.table("t").select("position * 2 AS rowid", "flag")
    assert table.take([4, 2]).fetchall() == [(8, TABLE["flag"][4].as_py()), (4, TABLE["flag"][2].as_py())]
    assert table.take([4, 2]).filter("rowid > 5").columns == ["rowid", "flag"]


@pytest.mark.parametrize("row", [-1, 3000, 2**63])
def test_a_row_that_is_not_there(con: bamquery.Connection, row: int) -> None:
    with pytest.raises(IndexError, match=f'no row {row} in table "t": its rows are 0 to 2,999'):
        con.table("t").take(np.array([5, row]) if row < 2**63 else np.array([5, row], "u8"))
    con.sql("CREATE OR REPLACE TABLE nothing (x INTEGER)")
    with pytest.raises(IndexError, match='in table "nothing": it has no rows'):
        con.table("nothing").take([0])
    assert con.table("nothing").take([]).fetchall() == []


@pytest.mark.parametrize("rows", [[1.0], [True], ["1"], [None], [1, None], pa.array([1, None]), 5, [[1]]])
def test_what_is_no_list_of_numbers(con: bamquery.Connection, rows: Any) -> None:
    with pytest.raises(TypeError, match="rows is a list of whole numbers"):
        con.table("t").take(rows)


def test_what_is_no_table_or_column(con: bamquery.Connection) -> None:
    con.sql("CREATE OR REPLACE VIEW v AS SELECT * FROM t WHERE flag")
    for relation in (
        con.table("t").filter("flag"),
        con.table("t").limit(5),
        con.table("v"),
        con.sql("SELECT 1"),
    ):
        with pytest.raises(TypeError, match=r"con\.table\(name\)\.take"):
            relation.take([0])
    with pytest.raises(CatalogError, match='columns: there is no column "fare"'):
        con.table("t").take([0], ["fare"])
    with pytest.raises(TypeError, match="a list of names"):
        con.table("t").take([0], "position")
    with pytest.raises(TypeError, match="name at least one"):
        con.table("t").take([0], [])


def test_it_is_the_version_that_the_relation_was_made_over(con: bamquery.Connection) -> None:
    con.sql("CREATE OR REPLACE TABLE grows AS SELECT range AS a FROM range(3)")
    before = con.table("grows")
    con.sql("ALTER TABLE grows ADD COLUMN b INTEGER DEFAULT 5; INSERT INTO grows VALUES (9, 1)")
    assert con.table("grows").take([3, 0]).fetchall() == [(9, 1), (0, 5)]
    with pytest.raises(IndexError, match="no row 3"):
        before.take([3])
