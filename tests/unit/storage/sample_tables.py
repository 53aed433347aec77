"""Small tables, and another process that works on the same database."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from bamquery.storage.database.database import Database
from bamquery.storage.tables.snapshot import Snapshot
from bamquery.storage.tables.writer import TableWriter

SCHEMA = pa.schema([("a", pa.int64())])


def batch(values: Sequence[int | None]) -> pa.RecordBatch:
    """Rows of SCHEMA."""
    return pa.record_batch([pa.array(values, pa.int64())], schema=SCHEMA)


def fill(writer: TableWriter, values: Sequence[int | None]) -> int:
    """Write and commit."""
    with writer:
        writer.write(batch(values))
        return writer.commit()


def create(database: Database, name: str, values: Sequence[int | None] = (1, 2, 3), **options: Any) -> int:
    """A table of SCHEMA."""
    return fill(database.create_table(name, SCHEMA, **options), values)


def append(database: Database, name: str, values: Sequence[int | None]) -> int:
    """More rows of SCHEMA."""
    return fill(database.table(name).append(), values)


def rows_of(snapshot: Snapshot) -> pa.Table:
    """All rows, read by pyarrow from the fragments' files."""
    tables = [pa.ipc.open_file(pa.memory_map(str(f.path))).read_all() for f in snapshot.fragments]
    return pa.concat_tables([snapshot.schema.empty_table(), *tables]).unify_dictionaries()


def values_of(database: Database, name: str) -> list[int | None]:
    """Column `a` of the latest version."""
    with database.table(name).snapshot() as snapshot:
        values: list[int | None] = rows_of(snapshot)["a"].to_pylist()
        return values


_LOOP = """
import json, sys
from bamquery.errors import *
from bamquery.storage.database.database import Database
from tests.unit.storage.sample_tables import *
database = Database.open(sys.argv[1])
for line in sys.stdin:
    names = globals()
    code = json.loads(line)
    try:
        try:
            answer = eval(code, names)
        except SyntaxError:
            answer = exec(code, names)
        print(json.dumps([None, answer], default=str), flush=True)
    except BaseException as error:
        print(json.dumps([type(error).__name__, str(error)]), flush=True)
"""


class OtherProcess:
    """Runs statements and expressions in another process that has `database` open; a context manager."""

    def __init__(self, database: Database) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LOOP, str(database.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],  # where it finds this module
        )

    def begin(self, code: str) -> None:
        """Start `code` and do not wait for it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What `code` evaluated to."""
        assert self.process.stdout is not None
        error, value = json.loads(self.process.stdout.readline())
        if error is not None:
            raise OtherError(error, value)
        return value

    def run(self, code: str) -> Any:
        """Both."""
        self.begin(code)
        return self.answer()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def __enter__(self) -> OtherProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class OtherError(Exception):
    """The other process raised: class name and message."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
