"""SUMMARIZE: DuckDB's figures where those are exact, and exact ones where they are not."""

import pytest

import bamquery
from tests.oracle import connect
from tests.sql.script import render_table

ROWS = """
SELECT * FROM (VALUES
  (1, 'a', 1.5, DATE '2024-01-01', TRUE, NULL, 1.5::DOUBLE, TIMESTAMP '2024-01-01 01:02:03'),
  (2, 'b', NULL, DATE '2024-01-03', FALSE, NULL, -2.25, NULL),
  (9, 'a', 3.5, NULL, NULL, NULL, 0, TIMESTAMP '2020-01-01 00:00:00.5'),
  (NULL, '', 4.5, DATE '1969-01-03', TRUE, NULL, NULL, TIMESTAMP '2024-01-01 01:02:03')
) v(i, s, d, day, b, n, f, "a time")
"""
EXACT = ["column_name", "min", "max", "approx_unique", "count", "null_percentage"]


@pytest.fixture
def ours():
    with bamquery.connect(device="cpu") as connection:
        yield connection


def test_figures_are_duckdbs(ours):
    with connect() as oracle:
        theirs = oracle.sql(f"SUMMARIZE {ROWS}").to_arrow_table()
    mine = ours.sql(f"SUMMARIZE {ROWS}").to_arrow()
    assert mine.column_names == theirs.column_names
    assert render_table(mine.select(EXACT)) == render_table(theirs.select(EXACT))
    numbers = [row for row, name in enumerate(mine.column("column_name").to_pylist()) if name in "idf"]
    for row in numbers:
        for figure in ("avg", "std"):
            given, wanted = mine.column(figure)[row].as_py(), theirs.column(figure)[row].as_py()
            assert float(given) == pytest.approx(float(wanted), rel=1e-12)


@pytest.mark.parametrize("encoding", ["plain", "auto"])
def test_a_table_is_as_its_rows(ours, encoding):
    """However it is stored; of several vectors and fragments, strings of few values and nulls among them."""
    more = f"SELECT r.* FROM ({ROWS}) r, range(700)"
    ours.sql(f"CREATE TABLE t WITH (encoding = '{encoding}') AS {more}; INSERT INTO t {more}")
    with ours._session.database.table("t").snapshot() as snapshot:
        kinds = {c.encoding is None for f in snapshot.fragments for c in f.layout.columns}
        assert len(snapshot.fragments) == 2
    assert (False in kinds) == (encoding == "auto")
    mine, theirs = (ours.sql(f"SUMMARIZE {what}").to_arrow() for what in ("t", f"{more} UNION ALL {more}"))
    assert render_table(mine.select(EXACT)) == render_table(theirs.select(EXACT))


def test_quartiles_are_values(ours):
    ours.sql("CREATE TABLE t AS SELECT * FROM (VALUES (10), (40), (20), (30), (NULL), (50)) v(x)")
    (row,) = ours.sql("SUMMARIZE t").to_arrow().to_pylist()
    assert [row[name] for name in ("q25", "q50", "q75")] == ["20", "30", "40"]
    (row,) = ours.sql("SUMMARIZE SELECT DATE '2024-01-01' AS day FROM t").to_arrow().to_pylist()
    assert [row[name] for name in ("q25", "q50", "q75")] == ["2024-01-01"] * 3


def test_nothing_to_summarize(ours):
    ours.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
    for row in ours.sql("SUMMARIZE t").to_arrow().to_pylist():
        assert (row["count"], row["approx_unique"]) == (0, 0)
        assert row["min"] is row["q50"] is row["null_percentage"] is None


def test_what_can_be_summarized(ours, tmp_path):
    ours.sql(f"CREATE TABLE t AS {ROWS}; CREATE VIEW v AS SELECT i, s FROM t")
    ours.sql(f"COPY v TO '{tmp_path}/x.csv'")
    for source in ("v", "(SELECT i, s FROM t)", "FROM v", f"FROM '{tmp_path}/x.csv'", "VALUES (1, 'a')"):
        assert ours.sql(f"SUMMARIZE {source}").to_arrow().num_rows == 2
    with pytest.raises(bamquery.SqlError, match='no table "nowhere"'):
        ours.sql("SUMMARIZE nowhere")
    with pytest.raises(bamquery.SqlError, match="syntax error"):
        ours.sql("SUMMARIZE")


def test_columns_of_one_name(ours):
    answer = ours.sql('SUMMARIZE SELECT 1 AS a, 2 AS a, 3 AS "A b"').to_arrow().to_pylist()
    assert [(row["column_name"], row["min"]) for row in answer] == [("a", "1"), ("a_1", "2"), ("A b", "3")]
