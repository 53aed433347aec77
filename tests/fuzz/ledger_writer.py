"""A process that changes a database by SQL until it is killed, and says before and after each what changes.

Run as a script: folder of the database, file of the ledger, name of the writer, seed. It waits for a line of
input: what its own tables hold, as JSON. A line of the ledger is JSON too: `kind` (begin or end), and the
`state`, batches that its tables hold once the change is done; or for the table that all share, `batch`.
"""

from __future__ import annotations

import json
import os
import random
import sys
from contextlib import suppress
from typing import TypeAlias

import bamquery
from bamquery.errors import CatalogError, ConflictError, SqlError
from bamquery.storage.format.layout import ENCODINGS
from bamquery.storage.tables import optimize
from bamquery.storage.tables import writer as table_writer

SHARED = "shared"
State: TypeAlias = dict[str, list[int]]
"""Batches in each of a writer's own tables."""


def batch_rows(batch: int) -> int:
    """Rows of a batch."""
    return 1 + batch * 7919 % 700


def batch_sql(batch: int) -> str:
    """Its rows; everything else follows from the number."""
    return f"SELECT {batch}::BIGINT AS batch, n, 'text ' || n AS s FROM range({batch_rows(batch)}) r(n)"


class Writer:
    """One process's work."""

    def __init__(self, con: bamquery.Connection, ledger: int, name: str, seed: int, state: State) -> None:
        self.con = con
        self.name = name
        self.state = state
        self.luck = random.Random(seed)
        self._ledger = ledger

    def say(self, kind: str, **what: object) -> None:
        """Add a line to the ledger, in one write."""
        os.write(self._ledger, json.dumps({"kind": kind, **what}).encode() + b"\n")

    def step(self) -> None:
        """One change of a table of its own, or of the one that all share."""
        batch = self.luck.randrange(1 << 40)
        own = sorted(self.state)
        table = self.luck.choice(own) if own else ""
        free = next(f"{self.name}{i}" for i in range(9) if f"{self.name}{i}" not in own)
        match self.luck.randrange(12):
            case 0 | 1 if len(own) < 4:
                how = self.luck.choice(["", "WITH (encoding = 'auto') "])
                self.change(f"CREATE TABLE {free} {how}AS {batch_sql(batch)}", {**self.state, free: [batch]})
            case 2 if own:
                self.change(f"DROP TABLE {table}", {k: v for k, v in self.state.items() if k != table})
            case 3 if own:
                moved = {free if k == table else k: v for k, v in self.state.items()}
                self.change(f"ALTER TABLE {table} RENAME TO {free}", moved)
            case 4 if own:
                self.change(
                    f"CREATE OR REPLACE TABLE {table} AS {batch_sql(batch)}", {**self.state, table: [batch]}
                )
            case 5 | 6 if own:
                held = [*self.state[table], batch]
                self.change(f"INSERT INTO {table} {batch_sql(batch)}", {**self.state, table: held})
            case 7 if own:
                if self.luck.random() < 0.5:
                    self.con.execute(f"ALTER TABLE {table} SET (encoding = '{self.luck.choice(ENCODINGS)}')")
                self.con.execute(f"OPTIMIZE {table}{self.luck.choice(['', ' CLUSTER BY (n)'])}")
            case 8:
                self.con.execute("VACUUM")
            case 9:
                self.con.execute(f"OPTIMIZE {SHARED}")
            case _:
                self.say("begin", batch=batch)
                self.con.execute(f"INSERT INTO {SHARED} {batch_sql(batch)}")
                self.say("end", batch=batch)

    def change(self, sql: str, state: State) -> None:
        """A change that nobody else can be in the way of."""
        self.say("begin", state=state)
        self.con.execute(sql)
        self.state = state
        self.say("end", state=state)


def main() -> None:
    """Work until killed."""
    path, ledger, name, seed = sys.argv[1:]
    table_writer.FRAGMENT_BYTES = 30_000  # type: ignore[misc]
    table_writer.MERGED_APPENDS = 3  # type: ignore[misc]
    optimize.COMPACT_ROWS = 2_000  # type: ignore[misc]
    descriptor = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    with bamquery.connect() as warm:  # what is imported with the first statements is not to be killed only
        warm.execute(f"CREATE TABLE w AS {batch_sql(1)}; INSERT INTO w {batch_sql(2)}; VACUUM")
    print("ready", flush=True)
    state = json.loads(sys.stdin.readline())
    with bamquery.connect(path) as con:
        with suppress(CatalogError, ConflictError, SqlError):
            con.execute(f"CREATE TABLE IF NOT EXISTS {SHARED} AS {batch_sql(0)} LIMIT 0")
        writer = Writer(con, descriptor, name, int(seed), state)
        while True:
            with suppress(ConflictError):
                writer.step()


if __name__ == "__main__":
    main()
