"""DuckDB over a file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from bamquery.errors import BamQueryError
from bamquery.queries.speed.comparing import EXACT, Comparison
from bamquery.queries.speed.systems.system import Asked, RefusedError, Run


class DuckDbFile:
    """One connection, on the processor's threads."""

    name = "DuckDB"
    data = "a file of its own, in DuckDB's buffers"
    queries = "our SQL"
    comparison: Comparison = EXACT

    def __init__(self, path: Path, threads: int) -> None:
        """Connect."""
        self._connection = open_duckdb(path, threads)

    @property
    def version(self) -> str:
        """Of the library."""
        import duckdb  # noqa: PLC0415 (open already)

        return str(duckdb.__version__)

    def warm(self, questions: Sequence[Asked]) -> None:
        """Its first answer does that."""

    def prepare(self, asked: Asked) -> Run:
        """The text is what there is."""
        import duckdb  # noqa: PLC0415 (open already)

        def run() -> pa.Table:
            try:
                answer: pa.Table = self._connection.sql(asked.sql).to_arrow_table()
            except duckdb.NotImplementedException as error:
                raise RefusedError(str(error)) from error
            except duckdb.Error as error:
                raise BamQueryError(f"DuckDB: {error}") from error
            return answer

        return run

    def floor(self) -> None:
        """It does not say what it read."""

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


def open_duckdb(path: Path, threads: int) -> Any:
    """A connection of DuckDB to a file.

    Raises:
        BamQueryError: it is not installed.
    """
    try:
        import duckdb  # noqa: PLC0415
    except ImportError as error:
        raise BamQueryError(
            'comparing with DuckDB needs duckdb, which is not installed: pip install "bamquery[bench]"'
        ) from error
    return duckdb.connect(str(path), config={"threads": threads})
