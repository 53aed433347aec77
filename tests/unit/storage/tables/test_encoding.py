"""How a table is stored is a property of its versions; OPTIMIZE brings fragments in line."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.storage.database.database import Database
from bamquery.storage.tables.table import Table

BATCH = pa.record_batch({"n": pa.array(np.arange(3000) % 50)})


@pytest.fixture
def table(tmp_path: Path):
    with Database.open(tmp_path / "db") as database:
        with database.create_table("t", BATCH.schema, encoding="plain") as writer:
            writer.write(BATCH)
            writer.commit()
        yield database.table("t")


def encoded(table: Table) -> list[bool]:
    with table.snapshot() as snapshot:
        return [fragment.layout.is_encoded for fragment in snapshot.fragments]


def append(table: Table) -> None:
    with table.append() as writer:
        writer.write(BATCH)
        writer.commit()


def test_what_is_written_next_is_stored_as_is_said(table: Table) -> None:
    append(table)
    table.set_encoding("auto")
    append(table)
    assert encoded(table) == [False, False, True]
    table.set_encoding("plain")
    append(table)
    assert encoded(table) == [False, False, True, False]


def test_saying_nothing_new_is_no_version(table: Table) -> None:
    version = table.versions()[-1].version
    table.set_encoding("plain")
    assert table.versions()[-1].version == version


def test_optimize_rewrites_a_single_fragment(table: Table) -> None:
    table.set_encoding("auto")
    assert table.optimize().rows_written == 3000
    assert encoded(table) == [True]
    assert table.optimize().rows_written == 0
    with table.snapshot() as snapshot:
        assert snapshot.encoding == "auto"
        assert snapshot.fragments[0].check() == []


def test_the_property_stays_with_a_renamed_table(tmp_path: Path, table: Table) -> None:
    with Database.open(tmp_path / "db") as database:
        database.rename("t", "u")
        append(database.table("u"))
        assert encoded(database.table("u")) == [False, False]
