"""A process that changes a database at random until it is killed, and logs what it is about to commit.

Run as a script: folder of the database, log file, seed. It waits for a line on standard input to begin.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from bamquery.errors import CatalogError, ConflictError
from bamquery.storage.database.database import Database
from bamquery.storage.format.layout import ENCODINGS
from bamquery.storage.tables import optimize
from bamquery.storage.tables import writer as table_writer
from bamquery.storage.tables.open_fragment import fragment_batches
from bamquery.storage.tables.snapshot import Snapshot

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.large_string())])
MOST_ROWS = 20_000


def batch(ids: list[int]) -> pa.RecordBatch:
    """Rows with these ids; everything else follows from them."""
    texts = [f"text {i}" if i % 5 else None for i in ids]
    return pa.record_batch([pa.array(ids, pa.int64()), pa.array(texts, pa.large_string())], schema=SCHEMA)


def read_ids(snapshot: Snapshot) -> list[int]:
    """The ids of all rows in order; the other column must fit them."""
    tables = [pa.Table.from_batches(list(fragment_batches(f, SCHEMA))) for f in snapshot.fragments]
    rows = pa.concat_tables([snapshot.schema.empty_table(), *tables])
    ids: list[int] = rows["id"].to_pylist()
    assert rows.combine_chunks().to_batches()[:1] in ([], [batch(ids)]), "columns of different rows"
    return ids


def digest(ids: list[int]) -> str:
    """Equal for equal lists."""
    return hashlib.blake2b(repr(ids).encode(), digest_size=12).hexdigest()


class Writer:
    """One process's work."""

    def __init__(self, database: Database, log: int, seed: int) -> None:
        self.database = database
        self.luck = random.Random(seed)
        self._log = log

    def say(self, kind: str, table: str, version: int, ids: list[int] | None) -> None:
        """Log, in one write, what is about to be committed or was committed."""
        line = {"kind": kind, "table": table, "version": version}
        if ids is not None:
            line |= {"digest": digest(ids), "sorted": digest(sorted(ids))}
        os.write(self._log, json.dumps(line).encode() + b"\n")

    def step(self) -> None:
        """One random change, which may lose to another process's."""
        table = self.luck.choice("ab")
        with suppress(CatalogError, ConflictError):
            match self.luck.randrange(8):
                case 0:
                    self.create(table)
                case 1:
                    self.database.vacuum()
                case 2:
                    keys = self.luck.choice([[], ["id"]])
                    self.database.table(table).optimize(keys)
                case 3:
                    with self.database.create_table("never", SCHEMA) as writer:
                        writer.write(batch(list(range(5000))))
                case _:
                    self.append(table)

    def create(self, table: str) -> None:
        """CREATE OR REPLACE."""
        ids = self._new_ids()
        encoding = self.luck.choice(ENCODINGS)
        with self.database.create_table(table, SCHEMA, or_replace=True, encoding=encoding) as writer:
            self._commit(writer, table, ids, ids)

    def append(self, table: str) -> None:
        """Add rows to whatever is there."""
        with self.database.table(table).append() as writer:
            base = writer._background.transaction.base.version
            with self.database.table(table).snapshot(base) as snapshot:
                before = read_ids(snapshot)
            if len(before) > MOST_ROWS:
                return
            ids = self._new_ids()
            self._commit(writer, table, ids, before + ids)

    def _commit(
        self, writer: table_writer.TableWriter, table: str, new: list[int], all_ids: list[int]
    ) -> None:
        for start in range(0, len(new), 700):
            writer.write(batch(new[start : start + 700]))
        self.say("begin", table, writer._background.transaction.base.version + 1, all_ids)
        self.say("end", table, writer.commit(), all_ids)

    def _new_ids(self) -> list[int]:
        start = self.luck.randrange(1 << 40)
        ids = list(range(start, start + self.luck.choice([1, 10, 1500, 4000])))
        self.luck.shuffle(ids)
        return ids


def main() -> None:
    """Work until killed."""
    path, log, seed = sys.argv[1:]
    table_writer.FRAGMENT_BYTES = 30_000  # type: ignore[misc]
    table_writer.MERGED_APPENDS = 3  # type: ignore[misc]
    optimize.COMPACT_ROWS = 5_000  # type: ignore[misc]
    descriptor = os.open(Path(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    print("ready", flush=True)
    sys.stdin.readline()
    with Database.open(path) as database:
        writer = Writer(database, descriptor, int(seed))
        while True:
            writer.step()


if __name__ == "__main__":
    main()
