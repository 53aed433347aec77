"""Files in folders `key=value`, and columns that say where rows are from: answers are DuckDB's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.engine.profiling.scan_profile import FileScanProfile
from bamquery.errors import BamQueryError
from bamquery.storage.ingest import opening
from tests.oracle import connect

FOLDERS = {
    "plain": "SELECT i // 100 AS y, i % 3 AS m, i AS x, 'v' || i AS s FROM range(1000) t(i)",
    "texts": "SELECT 'a /' || i % 3 || '=é' AS y, if(i % 2 = 0, i, NULL) AS m, i AS x FROM range(9) t(i)",
    "days": "SELECT DATE '2020-01-30' + i::INT AS y, i % 2 AS m, i AS x FROM range(5) t(i)",
}


@pytest.fixture
def theirs() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that no test changes."""
    found = tmp_path_factory.mktemp("partitioned")
    with connect() as connection:
        for name, rows in FOLDERS.items():
            for kind in ("parquet", "csv", "json"):
                connection.sql(
                    f"COPY ({rows}) TO '{found}/{name}_{kind}' (FORMAT {kind}, PARTITION_BY (y, m))"
                )
    return found


@pytest.fixture
def ours(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.chdir(tmp_path)
    for entry in folder.iterdir():
        Path(entry.name).symlink_to(entry)
    with bamquery.connect(device="cpu") as connection:
        yield connection


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file is opened."""
    found: Counter[str] = Counter()
    open_file = opening._open_file

    def counted(path: Path, **options: object) -> object:
        found[str(path)] += 1
        return open_file(path, **options)

    monkeypatch.setattr(opening, "_open_file", counted)
    return found


def compare(ours: Connection, theirs: duckdb.DuckDBPyConnection, query: str) -> None:
    mine, expected = ours.sql(query), theirs.sql(query)
    assert mine.columns == expected.columns
    assert [str(kind) for kind in mine.types] == [str(kind) for kind in expected.types]
    assert sorted(mine.fetchall(), key=str) == sorted(expected.fetchall(), key=str)


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
@pytest.mark.parametrize("name", FOLDERS)
def test_columns_of_folders(
    ours: Connection, theirs: duckdb.DuckDBPyConnection, name: str, kind: str
) -> None:
    files = f"'{name}_{kind}/*/*/*.{kind}'"
    compare(ours, theirs, f"FROM {files}")
    compare(ours, theirs, f"FROM read_{kind}({files}, hive_types_autocast = false)")
    compare(ours, theirs, f"FROM read_{kind}({files}, hive_types = {{'y': 'VARCHAR'}})")
    compare(ours, theirs, f"FROM read_{kind}({files}, hive_partitioning = false)")
    compare(ours, theirs, f"FROM read_{kind}({files}, filename = true)")
    compare(ours, theirs, f"FROM read_{kind}({files}, filename = 'where from')")
    compare(ours, theirs, f"FROM read_{kind}({files}, union_by_name = true)")
    compare(ours, theirs, f"SELECT y, count(*), max(x) FROM {files} GROUP BY y")


def test_arrow_files_too(ours: Connection) -> None:
    ours.sql("COPY (SELECT 1 AS x) TO 'k.arrow'")
    Path("arrow/k=7").mkdir(parents=True)
    Path("k.arrow").rename("arrow/k=7/x.arrow")
    assert ours.sql("SELECT x, k, file_row_number FROM 'arrow/*/*.arrow'").fetchall() == [(1, 7, 0)]


def test_a_column_of_the_same_name_gives_way(ours: Connection, theirs: duckdb.DuckDBPyConnection) -> None:
    for k, text in ((1, "q"), (2, "r")):
        Path(f"own/k={k}").mkdir(parents=True)
        theirs.sql(f"COPY (SELECT {k} AS x, '{text}' AS k, 5 AS z) TO 'own/k={k}/a.parquet'")
    compare(ours, theirs, "FROM 'own/*/*.parquet'")
    compare(ours, theirs, "FROM read_parquet('own/*/*.parquet', hive_partitioning = false)")
    compare(ours, theirs, "SELECT x FROM 'own/*/*.parquet' WHERE k = 2")


CONDITIONS = [
    ("y = 3", 3),
    ("y IN (1, 2)", 6),
    ("y = 3 AND m = 1 AND x > 5", 1),
    ("y BETWEEN 2 AND 4", 9),
    ("(y = 3 AND x > 5) OR (y = 4 AND x < 3)", 6),
    ("y::VARCHAR = '3'", 3),
    ("NOT (y = 3)", 27),
    ("y + m = 5", 3),
    ("y IS NULL", 0),
    ("y > 3.5", 18),
    ("filename LIKE '%y=3%' AND m <> 1", 2),
    ("file_index = 4", 1),
    ("y = 3 OR x = 7", 30),
    ("y = (SELECT 3)", 3),
    ("y IN (SELECT 3 UNION SELECT 4)", 6),
]


@pytest.mark.parametrize(("condition", "files"), CONDITIONS)
def test_only_files_that_can_have_rows_are_opened(
    ours: Connection,
    theirs: duckdb.DuckDBPyConnection,
    opened: Counter[str],
    condition: str,
    files: int,
) -> None:
    query = f"SELECT count(*), sum(x) FROM 'plain_parquet/*/*/*.parquet' WHERE {condition}"
    relation = ours.sql(query)
    assert opened.total() == 1  # which tells the columns
    assert relation.fetchall() == theirs.sql(query).fetchall()
    assert files <= opened.total() <= files + 1
    scans = [part for part in relation.profile.root.walk() if isinstance(part, FileScanProfile)]
    assert (scans[0].files_read, scans[0].files_total) == (files, 30)


def test_views_and_joins_prune(ours: Connection, opened: Counter[str]) -> None:
    ours.sql("CREATE VIEW v AS SELECT y * 10 AS tens, * FROM 'plain_parquet/*/*/*.parquet'")
    opened.clear()
    assert ours.sql("SELECT count(*) FROM v WHERE tens = 30").fetchall() == [(100,)]
    assert opened.total() <= 4
    opened.clear()
    joined = "SELECT count(*) FROM v JOIN (VALUES (3), (4)) d(k) ON v.y = d.k"
    assert ours.sql(joined).fetchall() == [(200,)]
    assert opened.total() <= 7


def test_explain_says_how_many_files(ours: Connection) -> None:
    query = "SELECT sum(x) FROM 'plain_parquet/*/*/*.parquet' WHERE y = 3"
    for explain in ("EXPLAIN", "EXPLAIN ANALYZE"):
        assert "files: 3 of 30" in "\n".join(row[0] for row in ours.sql(f"{explain} {query}").fetchall())


def test_a_condition_that_fails_for_some_file_fails(ours: Connection) -> None:
    with pytest.raises(BamQueryError, match="cannot be cast"):
        ours.sql("FROM 'plain_parquet/*/*/*.parquet' WHERE y::VARCHAR::DATE > '2020-01-01'").fetchall()


def test_files_that_are_not_alike(ours: Connection, theirs: duckdb.DuckDBPyConnection) -> None:
    for k, columns in ((1, "10 AS x"), (2, "20 AS x, 3 AS z"), (3, "30 AS z")):
        Path(f"mixed/k={k}").mkdir(parents=True)
        theirs.sql(f"COPY (SELECT {columns}) TO 'mixed/k={k}/a.parquet'")
    compare(ours, theirs, "FROM 'mixed/k=[12]/*.parquet'")
    compare(ours, theirs, "FROM read_parquet('mixed/*/*.parquet', union_by_name = true)")
    with pytest.raises(BamQueryError, match=r'k=3/a.parquet: has no column "x".*union_by_name = true'):
        ours.sql("FROM 'mixed/*/*.parquet'").fetchall()
    compare(ours, theirs, "FROM 'mixed/*/*.parquet' WHERE k < 3")


def test_the_first_files_tell_the_types_of_text(ours: Connection, theirs: duckdb.DuckDBPyConnection) -> None:
    for k, text in enumerate(["x\n1", "x\n2", "x,z\n2.5,q"]):
        Path(f"typed/k={k}").mkdir(parents=True)
        Path(f"typed/k={k}/a.csv").write_text(text + "\n")
    compare(ours, theirs, "FROM 'typed/*/*.csv'")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("read_parquet('mixed_keys/*/*.parquet', hive_partitioning = true)", "other keys than those of"),
        ("read_parquet('plain_parquet/*/*/*.parquet', hive_types = {'z': 'INT'})", 'no key "z"'),
        (
            "read_parquet('plain_parquet/*/*/*.parquet', hive_types = {'y': 'INT'}, hive_partitioning = 0)",
            "leave out hive_partitioning = false",
        ),
        ("read_parquet('plain_parquet/*/*/*.parquet', filename = 1.5)", "TRUE, FALSE or a name"),
        ("read_csv('plain_csv/*/*/*.csv', file_row_number = true)", "no option file_row_number"),
    ],
)
def test_what_is_wrong_is_said(
    ours: Connection, theirs: duckdb.DuckDBPyConnection, call: str, message: str
) -> None:
    for k in ("k=1", "j=1"):
        Path(f"mixed_keys/{k}").mkdir(parents=True)
        theirs.sql(f"COPY (SELECT 1 AS x) TO 'mixed_keys/{k}/a.parquet'")
    compare(ours, theirs, "FROM 'mixed_keys/*/*.parquet'")
    with pytest.raises(BamQueryError, match=message):
        ours.sql(f"FROM {call}")


VIRTUAL = [
    "SELECT x, filename, file_row_number, file_index, file_row_group_number FROM {p}",
    "SELECT *, filename FROM {p}",
    "FROM {p} WHERE filename LIKE '%y=3%' AND file_row_number < 2",
    "SELECT t.filename FROM {p} t ORDER BY file_index, file_row_number LIMIT 3",
    "SELECT count(DISTINCT filename), max(file_index) FROM {p}",
    "FROM read_parquet({p}, file_row_number = true, filename = true)",
    "SELECT a.filename, b.y FROM {p} a JOIN {p} b USING (filename) WHERE a.x = 5",
    "SELECT x, filename, file_index FROM 'texts_csv/*/*/*.csv'",
    "SELECT x, filename, file_index FROM 'texts_json/*/*/*.json'",
]


@pytest.mark.parametrize("query", VIRTUAL)
def test_virtual_columns(ours: Connection, theirs: duckdb.DuckDBPyConnection, query: str) -> None:
    compare(ours, theirs, query.format(p="'days_parquet/*/*/*.parquet'"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT file_row_number FROM 'days_csv/*/*/*.csv'",
        "SELECT filename FROM (FROM 'days_csv/*/*/*.csv') t",
        "SELECT * EXCLUDE (filename) FROM 'days_csv/*/*/*.csv'",
        "SELECT filename FROM read_csv('days_csv/*/*/*.csv', filename = 'f')",
    ],
)
def test_virtual_columns_are_no_part_of_what_is_there(
    ours: Connection, theirs: duckdb.DuckDBPyConnection, query: str
) -> None:
    with pytest.raises(BamQueryError, match="no column"):
        ours.sql(query)
    with pytest.raises(duckdb.Error):
        theirs.sql(query)


def test_own_columns_hide_virtual_ones(ours: Connection, theirs: duckdb.DuckDBPyConnection) -> None:
    theirs.sql("COPY (SELECT 'own' AS filename, 5 AS file_index) TO 'own.parquet'")
    compare(ours, theirs, "SELECT filename, file_index, file_row_number FROM 'own.parquet'")


def test_loads_and_tables_have_them(ours: Connection) -> None:
    assert ours.load("loaded", "plain_parquet/*/*/*.parquet") == 1000
    ours.sql("CREATE TABLE made AS FROM 'plain_csv/*/*/*.csv'")
    for table in ("loaded", "made"):
        found = ours.sql(f"SELECT count(*) FROM {table} WHERE y = 3 AND m = 1").fetchall()
        assert found == [(33,)]
    ours.sql("CREATE TABLE t (x BIGINT, s VARCHAR, m BIGINT, y BIGINT)")
    ours.sql("COPY t FROM 'plain_parquet/*/*/*.parquet' (HIVE_PARTITIONING true)")
    assert ours.sql("SELECT sum(y), sum(m) FROM t").fetchall() == [(4500, 999)]
    with pytest.raises(BamQueryError, match="takes 4 columns here, not 2"):
        ours.sql("COPY t FROM 'plain_parquet/*/*/*.parquet'")
