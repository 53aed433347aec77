"""A dump is read back as the database that it was made of."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import CatalogError
from bamquery.statements.dump import write_dump

SCHEMA = """
CREATE TABLE plain (a INTEGER, b VARCHAR);
CREATE TABLE "odd ""name""; --" (
    "key col" BIGINT NOT NULL, amount DECIMAL(10,2) DEFAULT 1.50, word VARCHAR DEFAULT 'it''s' NOT NULL,
    moment TIMESTAMP WITH TIME ZONE, d DOUBLE, raw BLOB, day DATE, clock TIME, small UTINYINT, flag BOOLEAN
);
CREATE TABLE empty (x HUGEINT);
INSERT INTO plain SELECT i::INTEGER, CASE WHEN i % 7 = 0 THEN NULL ELSE 'row ' || i || chr(10) || '''' END
    FROM range(2500) r(i);
INSERT INTO "odd ""name""; --" VALUES
    (1, 2.25, 'x', '2020-01-01 12:00:00+00', 'nan', '\\x00a', '0044-03-15 (BC)', '24:00:00', 255, true),
    (2, NULL, '', NULL, -0.0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO "odd ""name""; --" ("key col") VALUES (3);
ALTER TABLE plain ADD COLUMN late SMALLINT DEFAULT 7;
CREATE VIEW c_first AS SELECT * FROM z_last WHERE n > 1 -- and no more
;
CREATE VIEW z_last (n, t) AS SELECT a, b AS text FROM plain;
CREATE VIEW a_middle AS WITH plain AS (SELECT n FROM c_first) SELECT count(*) AS n FROM plain
"""
# A view can only be made over what is there: z_last first.
ORDER = [1, 0, 2]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    tables, *views = SCHEMA.split("CREATE VIEW ")
    with bamquery.connect(tmp_path / "made.bq") as con:
        con.sql(tables)
        for position in ORDER:
            con.sql(f"CREATE VIEW {views[position]}")
    return tmp_path / "made.bq"


def contents(con: bamquery.Connection) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in [*con.tables, *con.views]:
        quoted = '"' + name.replace('"', '""') + '"'
        rows = con.sql(f"SELECT * FROM {quoted}").fetchall()
        found[name] = (con.sql(f"DESCRIBE {quoted}").fetchall(), [str(row) for row in rows])
    return found


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "bamquery", *map(str, arguments)]


def dump_of(con: bamquery.Connection, *names: str) -> str:
    out = io.BytesIO()
    write_dump(con._session, names, out)
    return out.getvalue().decode()


def test_a_dump_is_read_back_equal(made: Path, tmp_path: Path) -> None:
    target = tmp_path / "dump.sql"
    done = subprocess.run(command("dump", made, "--output", target), capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = subprocess.run(command("dump", made), capture_output=True, timeout=60)
    assert done.stdout == target.read_bytes()
    again = tmp_path / "again.bq"
    done = subprocess.run(command(again, "-f", target, "--format", "csv"), capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    with bamquery.connect(made) as one, bamquery.connect(again) as two:
        assert contents(one) == contents(two)
        assert len(contents(one)) == 6
        assert dump_of(two) == dump_of(one)


def test_duckdb_reads_it(made: Path) -> None:
    with bamquery.connect(made) as con, duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        duck.execute(dump_of(con))
        for name in ("plain", '"odd ""name""; --"', "empty", "c_first", "a_middle"):
            query = f"SELECT COLUMNS(*)::VARCHAR FROM {name}"
            ours = con.sql(f"SELECT * FROM {name}").columns
            texts = ", ".join(f'"{column}"::VARCHAR' for column in ours)
            assert duck.execute(query).fetchall() == con.sql(f"SELECT {texts} FROM {name}").fetchall()


def test_names(made: Path) -> None:
    with bamquery.connect(made) as con:
        assert dump_of(con, "EMPTY") == 'CREATE TABLE "empty" (\n  "x" DECIMAL(38,0)\n);\n'
        assert dump_of(con, "z_last").startswith('CREATE VIEW "z_last" ("n", "t") AS\nSELECT a, b AS text')
        assert dump_of(con, "empty", "c_first", "empty").count("CREATE") == 2
        with pytest.raises(CatalogError, match=r'there is no table or view "plan"\. Did you mean "plain"'):
            dump_of(con, "plan")


def test_a_view_that_cannot_be_used_is_a_comment(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW v AS\nSELECT a\nFROM t; DROP TABLE t")
    text = dump_of(con)
    assert all(line.startswith("-- ") for line in text.splitlines())
    assert '-- CREATE VIEW "v" AS' in text
    assert "cannot be used" in text
    with bamquery.connect() as other:
        assert list(other.statements(text)) == []


def test_a_dump_holds_few_rows_at_once(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": range(100_000)}))

    class Counted(io.RawIOBase):
        longest = 0
        lines = 0

        def write(self, data: bytes) -> int:
            self.longest = max(self.longest, len(data))
            self.lines += data.count(b"\n")
            return len(data)

    out = Counted()
    write_dump(con._session, (), out)
    assert out.lines > 100_000
    assert out.longest < 1000


def test_no_database_is_made(tmp_path: Path) -> None:
    done = subprocess.run(command("dump", tmp_path / "no.bq"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "no.bq" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_full_disk(made: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command("dump", made), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr == "bamquery: cannot write the output: No space left on device\n"
