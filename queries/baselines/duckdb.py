"""DuckDB over a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from bamquery.queries.questions import LONG_MILES, Question
from bamquery.queries.systems import Answer
from bamquery.queries.trips.parquet_files import parquet_files


class System:
    """DuckDB in this process, with its own defaults: all cores."""

    name = "DuckDB"

    def __init__(self, parquet: Path) -> None:
        """Nothing is opened yet."""
        self.files = [parquet]
        self._connection: Any = None

    def open(self) -> None:
        """Connect, and call the rows `trips`."""
        self._connection = duckdb.connect()
        paths = ", ".join("'" + str(file).replace("'", "''") + "'" for file in parquet_files(self.files[0]))
        view = f"CREATE VIEW trips AS SELECT * FROM read_parquet([{paths}])"  # noqa: S608 (quoted)
        self._connection.execute(view)

    def ask(self, question: Question) -> Answer:
        """Run the same SQL."""
        return Answer(self._connection.execute(question.sql("trips")).fetchone()[0])

    def bytes_moved(self, _question: Question) -> None:
        """Unknown: pages that cannot match may be skipped."""

    def count(self) -> int:
        """Long trips."""
        text = f"SELECT count(*) FROM trips WHERE trip_distance >= {LONG_MILES}"  # noqa: S608 (a number)
        count: int = self._connection.execute(text).fetchone()[0]
        return count

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
