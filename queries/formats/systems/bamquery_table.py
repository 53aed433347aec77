"""A table of BamQuery: `take` and SQL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.connection.connection import Connection, connect
from bamquery.queries.formats.systems.system import TABLE
from bamquery.queries.questions import Question
from bamquery.relations.relation import Relation


class System:
    """One database on the CPU, whose table is `auto` or `plain`."""

    def __init__(
        self,
        folder: Path,
        threads: int,
        *,
        encoding: Literal["auto", "plain"],
        reader: Literal["auto", "mapped", "direct"],
        strategy: Literal["auto", "blocks"] = "auto",
    ) -> None:
        self._path = folder / f"{encoding}.bq"
        self._threads = threads
        self._encoding = encoding
        self._reader: Literal["auto", "mapped", "direct"] = reader
        self._strategy = strategy
        self._connection: Connection | None = None
        self._latest: Relation | None = None

    def write(self, rows: pa.Table) -> None:
        """One commit."""
        with self._connect() as connection:
            connection.set("default_encoding", self._encoding)
            connection.load(TABLE, rows)

    def open(self) -> None:
        """Connect."""
        self._connection = self._connect()

    def take(self, numbers: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """By `Relation.take`, which comes in the order of the numbers."""
        assert self._connection is not None, "opened first"
        self._latest = self._connection.table(TABLE).take(numbers, columns)
        return self._latest.to_arrow()

    def ask(self, question: Question) -> float | None:
        """The question's SQL."""
        assert self._connection is not None, "opened first"
        self._latest = self._connection.sql(question.sql(TABLE))
        answer: float | None = self._latest.to_arrow().column(0)[0].as_py()
        return answer

    def bytes_read(self) -> int | None:
        """As its profile has it: what it asked mappings or the drive for; statistics are not in it."""
        return None if self._latest is None else self._latest.profile.io.bytes_read

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> Connection:
        connection = connect(
            self._path, device="cpu", threads=self._threads, reader=self._reader, progress=False
        )
        connection.set("strategy", self._strategy)
        return connection
