"""Makes `database.tar.xz`, a database of format 3: run once, by the last BamQuery that wrote that format.

    git archive db57fec1 | tar -x -C /tmp/format3     # and its extension beside it
    export PYTHONPATH=/tmp/format3:.venv/lib/python3.11/site-packages
    python3.11 -S tests/unit/storage/tables/format_3/make.py

-S leaves aside what stands in for an installed BamQuery. What is in the database is said here, too, for tests
that read it by later versions.
"""

from __future__ import annotations

import datetime
import decimal
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

ARCHIVE = Path(__file__).with_name("database.tar.xz")
FORMAT = 3
CUT = 1100
ROWS = 1500
LATE = 5
"""Rows that came after ALTER TABLE."""


def rows(first: int, last: int) -> pa.Table:
    """Rows of table `t` as they were loaded."""
    numbers = range(first, last)
    day, moment = datetime.date(2015, 1, 1), datetime.datetime(2015, 1, 1, 12)

    def holes(values: list[Any]) -> list[Any]:
        return [None if number % 11 == 3 else value for number, value in zip(numbers, values, strict=True)]

    words = holes([("yellow", "green", "", "x" * 20)[n % 4] for n in numbers])
    return pa.table(
        {
            "n": pa.array(list(numbers), pa.int64()),
            "zone": pa.array(holes([n * 7 % 265 for n in numbers]), pa.int16()),
            "fare": pa.array(holes([n * 37 % 9000 / 100 for n in numbers]), pa.float64()),
            "odd": pa.array([(-0.0, float("inf"), 1e-310, 0.1)[n % 4] * 1.0 for n in numbers], pa.float64()),
            "price": pa.array(
                holes([decimal.Decimal(n * 13 % 5000) / 100 for n in numbers]), pa.decimal128(9, 2)
            ),
            "day": pa.array([day + datetime.timedelta(n % 400) for n in numbers], pa.date32()),
            "moment": pa.array(
                holes([moment + datetime.timedelta(seconds=n * 61) for n in numbers]), pa.timestamp("us")
            ),
            "flag": pa.array(holes([n % 3 == 0 for n in numbers]), pa.bool_()),
            "word": pa.array(words, pa.large_string()),
            "code": pa.array(words, pa.large_string()).dictionary_encode(),
            "text": pa.array([f"trip {n * n}" for n in numbers], pa.large_string()),
        }
    )


def _make(folder: Path) -> None:
    import bamquery  # the one whose format it is
    from bamquery.storage.tables.manifest import FORMAT_VERSION

    assert FORMAT_VERSION == FORMAT, f"{bamquery.__file__} writes format {FORMAT_VERSION}"
    with bamquery.connect(folder) as con:
        con.load("t", rows(0, CUT))
        con.load("t", rows(CUT, ROWS), if_exists="append")
        con.sql("ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 7; ALTER TABLE t RENAME COLUMN odd TO even")
        later = rows(ROWS, ROWS + LATE).rename_columns(
            ["even" if name == "odd" else name for name in rows(0, 1).column_names]
        )
        con.load("t", later.append_column("late", pa.array(range(LATE), pa.int32())), if_exists="append")
        con.sql("CREATE VIEW v AS SELECT word, count(*) AS c FROM t GROUP BY word")
        con.sql("CREATE TABLE gone AS SELECT 1 AS a; DROP TABLE gone; VACUUM")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        _make(Path(made) / "database")
        archive.add(Path(made) / "database", "database")
