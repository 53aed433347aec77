"""Tables whose manifest was changed and sealed again: the rows that were written, or an error."""

import copy
import json
import random

import numpy as np
import pyarrow as pa
import pytest

from bamquery._native import crc32c
from bamquery.errors import BamQueryError
from bamquery.storage.database.database import Database
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.tables import writer as table_writer
from tests.selection.effort import effort

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.large_string())])
ROWS = 3000


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 20_000)
    with Database.open(tmp_path / "db") as database:
        with database.create_table("T", SCHEMA) as writer:
            texts = [f"text {i % 100}" for i in range(ROWS)]
            columns = [pa.array(np.arange(ROWS)), pa.array(texts, pa.large_string())]
            writer.write(pa.record_batch(columns, schema=SCHEMA))
            writer.commit()
        yield database


def read(path):
    """Column `a`, as a query reads it, and the report of `check`."""
    with Database.open(path) as database:
        report = database.check()
        found = []
        for name in database.table_names():
            with database.table(name).snapshot() as snapshot:
                for fragment in snapshot.fragments:
                    reader = MappedReader(fragment.path, fragment.data_bytes)
                    for column in fragment.schema.names:
                        vectors = np.arange(fragment.vector_count)
                        values = FragmentReader(fragment, reader).stream(column, vectors, ReadCounters())
                        if column == "a":
                            found += values.to_pylist()
                    reader.close()
        return found, report


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def forge(members, luck):
    """One random change somewhere."""
    members = copy.deepcopy(members)
    path = luck.choice([path for path in places(members) if path])
    parent = members
    for key in path[:-1]:
        parent = parent[key]
    value = parent[path[-1]]
    others = [
        None,
        True,
        0,
        -1,
        1,
        2**31,
        2**63,
        10**30,
        0.5,
        "",
        "x",
        "..",
        [],
        {},
        [value],
        members["schema"],
    ]
    if isinstance(value, int):
        others += [value + 1, value - 1, value * 2]
    if isinstance(value, str) and value:
        at = luck.randrange(len(value))
        others += [value[:at], value[:at] + luck.choice("0aZ/=\0ü") + value[at + 1 :], value[::-1], value * 2]
    match luck.randrange(4):
        case 0 if isinstance(parent, dict):
            del parent[path[-1]]
        case 1 if isinstance(parent, list):
            parent.insert(luck.randrange(len(parent) + 1), copy.deepcopy(luck.choice(parent)))
        case _:
            parent[path[-1]] = luck.choice(others)
    return members


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_forged_manifests_give_the_rows_or_an_error(database, seed):
    assert read(database.path)[0] == list(range(ROWS))
    luck = random.Random(seed)
    path = database.table("t").folder.manifest(1)
    members = json.loads(path.read_bytes())
    del members["crc32c"]
    answered = 0
    count = effort(40, 1000)
    for _ in range(count):
        covered = json.dumps(forge(members, luck), indent=1).encode()[: -len("\n}")]
        path.write_bytes(covered + b',\n "crc32c": "%08x"\n}\n' % crc32c(covered))
        try:
            found, report = read(database.path)
        except BamQueryError:
            continue
        assert found == list(range(ROWS))
        assert report.clean
        answered += 1
    assert answered < count // 5  # changes of the time, say, leave a manifest that is right
