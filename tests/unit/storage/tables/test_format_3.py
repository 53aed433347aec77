"""A database that the last BamQuery of format 3 wrote: read, written to, and re-encoded by OPTIMIZE."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

import bamquery
from bamquery.storage.statistics.vectors_file import FORMAT_KEY
from tests.unit.storage.random_columns import assert_same
from tests.unit.storage.tables.format_3.make import ARCHIVE, CUT, FORMAT, LATE, ROWS, rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "database"


def expected(last: int = ROWS + LATE) -> pa.Table:
    """Table t as the later BamQuery sees it."""
    table = rows(0, last)
    table = table.rename_columns(["even" if name == "odd" else name for name in table.column_names])
    late = [7] * ROWS + [row - ROWS for row in range(ROWS, last)]
    return table.append_column("late", pa.array(late, pa.int32()))


def require_rows(con: bamquery.Connection, wanted: pa.Table) -> None:
    """All values are those, to the last bit; all three ways of reading are tried."""
    for strategy in ("stream", "vectors", "blocks"):
        con.set("strategy", strategy)
        found = con.sql("SELECT * FROM t WHERE n % 3 < 3 ORDER BY n").to_arrow()
        assert found.column_names == wanted.column_names
        for name in wanted.column_names:
            ours, theirs = (table[name].combine_chunks() for table in (found, wanted))
            if pa.types.is_dictionary(ours.type):
                ours, theirs = ours.dictionary_decode(), theirs.dictionary_decode()
            assert_same(ours, theirs)
    con.set("strategy", "auto")
    con.set("zone_maps", True)
    assert con.sql("SELECT min(n), max(n), count(*), count(zone) FROM t").fetchall() == [
        (0, wanted.num_rows - 1, wanted.num_rows, wanted.num_rows - wanted["zone"].null_count)
    ]
    assert con.sql("SELECT count(*) FROM t WHERE n >= 1400 AND fare IS NULL").fetchall() == [
        (sum(v is None for v in wanted["fare"].to_pylist()[1400:]),)
    ]


def formats(folder: Path) -> set[bytes]:
    """Of all vectors files."""
    found = set()
    for path in folder.glob("tables/t/fragments/*.vectors.arrow"):
        with pa.OSFile(str(path)) as file:
            found.add(pa.ipc.open_file(file).schema.metadata[FORMAT_KEY])
    return found


def is_encoded(con: bamquery.Connection) -> list[bool]:
    with con._session.database.table("t").snapshot() as snapshot:
        return [fragment.layout.is_encoded for fragment in snapshot.fragments]


def test_it_is_of_format_3(folder: Path) -> None:
    assert formats(folder) == {b"3"}
    for manifest in folder.glob("tables/*/manifests/*.json"):
        assert f'"format_version": {FORMAT}'.encode() in manifest.read_bytes()


def test_it_is_read(folder: Path) -> None:
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    with bamquery.connect(folder) as con:
        require_rows(con, expected())
        assert con.tables == ["t"]
        words = con.sql("SELECT c FROM v WHERE word = 'yellow'").fetchall()
        assert words == [(expected()["word"].to_pylist().count("yellow"),)]
        report = con.check()
        assert (report.clean, report.litter, report.unknown) == (True, [], [])
        assert is_encoded(con) == [False] * 3
    assert {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before


def test_its_fragments_are_opened_by_their_paths(folder: Path) -> None:
    """Under the names that they were written with; any Arrow reader sees the same."""
    with bamquery.connect(folder) as con, con._session.database.table("t").snapshot() as snapshot:
        paths = [fragment.path for fragment in snapshot.fragments]
    tables = [bamquery.open_fragment(path).read_all() for path in paths]
    assert [table.num_rows for table in tables] == [CUT, ROWS - CUT, LATE]
    assert tables[0].column_names == rows(0, 1).column_names
    for path, table in zip(paths, tables, strict=True):
        with pa.OSFile(str(path)) as file:
            assert pa.ipc.open_file(file).read_all().equals(table)


@pytest.mark.parametrize("encoding", ["auto", "plain"])
def test_it_is_written_to_and_encoded_anew(folder: Path, encoding: str) -> None:
    more = rows(ROWS + LATE, ROWS + 1500)
    more = more.rename_columns(["even" if name == "odd" else name for name in more.column_names])
    late = pa.array([row - ROWS for row in range(ROWS + LATE, ROWS + 1500)], pa.int32())
    with bamquery.connect(folder) as con:
        con.sql(f"ALTER TABLE t SET (encoding = '{encoding}')")
        con.load("t", more.append_column("late", late), if_exists="append")
        assert is_encoded(con) == [False, False, False, encoding == "auto"]
        require_rows(con, expected(ROWS + 1500))
        con.sql("OPTIMIZE t")
        assert is_encoded(con) == [encoding == "auto"]
        require_rows(con, expected(ROWS + 1500))
        con.sql("VACUUM")
        assert con.check().clean
        assert not con.check().litter
    assert formats(folder) == {b"6"}
    with bamquery.connect(folder) as con:
        require_rows(con, expected(ROWS + 1500))


def test_optimize_encodes_what_it_would_not_merge(folder: Path) -> None:
    """A table of one fragment, and nothing but its format to change."""
    with bamquery.connect(folder) as con:
        con.sql("ALTER TABLE t SET (encoding = 'plain'); OPTIMIZE t; ALTER TABLE t SET (encoding = 'auto')")
        assert is_encoded(con) == [False]
        con.sql("OPTIMIZE t")
        assert is_encoded(con) == [True]
        require_rows(con, expected())
        with con._session.database.table("t").snapshot() as snapshot:
            version = snapshot.version
        con.sql("OPTIMIZE t")
        with con._session.database.table("t").snapshot() as snapshot:
            assert snapshot.version == version  # nothing is left to do


def test_renamed_and_replaced(folder: Path) -> None:
    """What links fragments of the older format into folders of the newer one."""
    with bamquery.connect(folder) as con:
        con.sql("ALTER TABLE t RENAME TO u; CREATE TABLE t AS FROM u WHERE n >= 0")
        require_rows(con, expected())
        assert con.sql("SELECT count(*) FROM u").fetchall() == [(ROWS + LATE,)]
        assert con.check().clean
