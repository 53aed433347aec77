"""Cases: a small database of which files were changed, asked for all that it has.

Under `verify_checksums = 'all'` rows are those that were written, or there is an error; and where a query
finds damage, `check` does.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import bamquery
from bamquery._native import crc32c
from bamquery.errors import CorruptionError, SqlError
from bamquery.storage.tables import writer as table_writer
from tests.fuzz.cases import MEMORY_LIMIT, FailureError, judged, mutated, temporary_folder
from tests.fuzz.test_forged_manifests import forge

FRAGMENT_BYTES = 30_000
_MADE = (
    "CREATE TABLE t WITH (encoding = 'auto') AS SELECT i::BIGINT AS i, i / 7.0 AS d, "
    "CASE WHEN i % 5 > 0 THEN 'text ' || i END AS s, i % 3 = 0 AS b, (i * 1.25)::DECIMAL(12, 2) AS m, "
    "DATE '2020-01-01' + i::INT AS day, TIMESTAMP '2020-01-01' + INTERVAL (i) MINUTE AS at, "
    "'w' || i % 9 AS w FROM range(3000) r(i)",
    "ALTER TABLE t SET (encoding = 'plain')",
    "INSERT INTO t SELECT i + 3000, d, s, b, m, day, at, w FROM t WHERE i < 50",
    "CREATE TABLE few AS SELECT 'k' || (i % 4) AS k, count(*) AS n FROM range(40) r(i) GROUP BY 1",
    "ALTER TABLE few ADD COLUMN more INTEGER DEFAULT 5",
    "INSERT INTO few VALUES ('z', 1, 2)",
    "CREATE TABLE gone AS SELECT 1 AS x",
    "DROP TABLE gone",
    "CREATE VIEW v AS SELECT k, n FROM few WHERE n > 1",
)
_TABLES = ("t", "few")
_CHANGES = (
    "INSERT INTO t SELECT * FROM t LIMIT 3",
    "OPTIMIZE t",
    "ALTER TABLE t SET (encoding = 'auto')",
    "OPTIMIZE few CLUSTER BY (k)",
    "VACUUM",
    "ALTER TABLE few RENAME TO fewer",
    "ALTER TABLE few DROP COLUMN n",
    "CREATE OR REPLACE TABLE few AS SELECT 1 AS k",
    "DROP TABLE t",
    "DROP VIEW v",
    "VACUUM",
)


class DamagedDatabases:
    """Copies of one database, each damaged anew."""

    def __init__(self) -> None:
        """Make the database, in a folder that lives as long as this."""
        table_writer.FRAGMENT_BYTES = FRAGMENT_BYTES  # type: ignore[misc]
        self._scratch = TemporaryDirectory(dir=temporary_folder())
        self._base = Path(self._scratch.name)
        with bamquery.connect(self._base / "whole") as con:
            for statement in _MADE:
                con.execute(statement)
            self._rows = {name: sorted(con.sql(f"FROM {name}").fetchall(), key=repr) for name in _TABLES}
        found = (path for path in (self._base / "whole").rglob("*") if path.is_file())
        self._files = sorted(path.relative_to(self._base / "whole") for path in found)

    def run(self, seed: int) -> str:
        """See `Cases`."""
        luck = random.Random(seed)
        folder = self._base / "case"
        shutil.copytree(self._base / "whole", folder)
        try:
            for _ in range(luck.choice([1, 1, 1, 2, 3])):
                damage(folder, luck.choice(self._some(luck)), luck)
            return self._judge(folder, luck)
        finally:
            shutil.rmtree(folder)

    def _some(self, luck: random.Random) -> list[Path]:
        """All files, or only those that hold the most."""
        kind = luck.choice([".json", ".arrow", ""])
        if not kind:
            return self._files
        return [path for path in self._files if path.suffix == kind and ".vectors" not in path.suffixes]

    def close(self) -> None:
        """Remove the database."""
        self._scratch.cleanup()

    def _judge(self, folder: Path, luck: random.Random) -> str:
        ends: list[str] = []
        verified = luck.random() < 0.7
        with judged("connect", ends):
            con = bamquery.connect(
                folder, create=False, memory_limit=MEMORY_LIMIT, threads=luck.choice([1, 2])
            )
            with con:
                if verified:
                    con.set("verify_checksums", "all")
                found = self._read(con, folder, ends, verified)
                with judged("check", ends):
                    if con.check().clean and found:
                        raise FailureError(f"unseen: check says nothing, reading {found[0]}")
                for change in luck.sample(_CHANGES, 4):
                    with judged(change, ends):
                        con.execute(change)
        return next((end for end in ends if end != "fine"), "fine")

    def _read(self, con: bamquery.Connection, folder: Path, ends: list[str], verified: bool) -> list[str]:
        damaged = []
        with judged("SHOW TABLES", ends):
            con.sql("SHOW TABLES").fetchall()
        for name, rows in self._rows.items():
            with judged(f"FROM {name}", ends):
                try:
                    found = sorted(con.sql(f"FROM {name}").fetchall(), key=repr)
                except CorruptionError as error:
                    damaged.append(str(error))
                    raise
                except SqlError as error:
                    if "there is no table" in str(error) and (folder / "committed" / name).is_file():
                        raise FailureError(f"wrong: {name} is lost, and said to be none") from error
                    raise
                if verified and found != rows:
                    raise FailureError(
                        f"wrong: {len(found)} rows of {name}, of {len(rows)}, are not as written"
                    )
        for query in (
            "SELECT max(i), min(s) FROM t WHERE d > 400",
            "FROM v",
            "SELECT count(*), sum(m) FROM t",
        ):
            with judged(query, ends):
                con.sql(query).fetchall()
        return damaged


def damage(folder: Path, name: Path, luck: random.Random) -> None:
    """Change one file, put another thing in its place, or remove all that its folder has."""
    path = folder / name
    if path.is_symlink() or not path.is_file():  # gone, or what an earlier change has put there
        return
    match luck.randrange(13):
        case 0:
            path.unlink()
        case 1:
            path.unlink()
            luck.choice([os.mkfifo, os.mkdir])(path)
        case 2:
            path.unlink()
            path.symlink_to(luck.choice(["nowhere", "/dev/zero", path.name, "../lock"]))
        case 3:
            others = [other for other in folder.rglob(f"*{path.suffix}") if other.is_file() and other != path]
            if others:
                shutil.copyfile(luck.choice(sorted(others)), path)
        case 4 | 5 if path.suffix == ".json" and path.name[0] == "0":
            _forge(path, luck)
        case 12 if path.parent != folder and not path.parent.is_symlink():
            shutil.rmtree(path.parent)
        case _:
            path.write_bytes(mutated(path.read_bytes(), luck))


def _forge(path: Path, luck: random.Random) -> None:
    """Another manifest, with a right checksum; what a view asks cannot be told from what it asked."""
    try:
        members = json.loads(path.read_bytes())
    except ValueError:
        return
    if "view" in members:
        return
    del members["crc32c"]
    covered = json.dumps(forge(members, luck), indent=1).encode()[: -len("\n}")]
    path.write_bytes(covered + b',\n "crc32c": "%08x"\n}\n' % crc32c(covered))
