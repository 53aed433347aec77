"""DuckDB's own file, or DuckDB over a Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.queries.formats.systems.parquet import FILE
from bamquery.queries.formats.systems.system import TABLE
from bamquery.queries.questions import Question

_FILE: Final = "trips.duckdb"


class System:
    """SQL; rows by a join with `rowid`, of Parquet with `file_row_number`."""

    def __init__(self, folder: Path, threads: int, *, parquet: bool = False) -> None:
        self._folder = folder
        self._threads = threads
        self._parquet = parquet
        self._connection: Any = None

    def write(self, rows: pa.Table) -> None:
        """One table, compressed as DuckDB chooses; by one thread, as several leave blocks free."""
        connection = duckdb.connect(str(self._folder / _FILE), config={"threads": 1})
        connection.register("source_rows", rows)
        connection.execute(f"CREATE TABLE {TABLE} AS FROM source_rows")
        connection.execute("CHECKPOINT")
        connection.close()

    def open(self) -> None:
        """Connect; what is asked for in SQL is called `trips` in both."""
        self._connection = self._connect()
        if self._parquet:
            path = str(self._folder / FILE).replace("'", "''")
            self._connection.execute(
                f"CREATE VIEW {TABLE} AS FROM read_parquet('{path}', file_row_number = true)"
            )

    def take(self, numbers: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """A join, whose keys DuckDB gives to the scan."""
        self._connection.register("chosen", pa.table({"number": numbers}))
        place = "file_row_number" if self._parquet else "rowid"
        listed = ", ".join(columns)
        text = f"SELECT {listed} FROM {TABLE} JOIN chosen ON {TABLE}.{place} = number"  # noqa: S608 (names of ours)
        table: pa.Table = self._connection.sql(text).to_arrow_table()
        return table

    def ask(self, question: Question) -> float | None:
        """The question's SQL."""
        answer: float | None = self._connection.execute(question.sql(TABLE)).fetchone()[0]
        return answer

    def bytes_read(self) -> None:
        """It does not count them for this."""

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def _connect(self) -> Any:
        path = ":memory:" if self._parquet else str(self._folder / _FILE)
        return duckdb.connect(path, read_only=not self._parquet, config={"threads": self._threads})
