"""ClickHouse over a folder of its own, which chdb runs in this process."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import BamQueryError
from bamquery.queries.speed.comparing import CLOSE, Comparison
from bamquery.queries.speed.systems.system import Asked, RefusedError, Run

DATABASE: Final = "speed"
_LONGEST: Final = 400
"""Characters of an error: ClickHouse shows the query in some."""
_REFUSALS: Final = ("NOT_IMPLEMENTED", "UNKNOWN_FUNCTION", "SYNTAX_ERROR", "UNSUPPORTED_METHOD")


class ClickHouseFolder:
    """One session, on the processor's threads; a process has one at a time."""

    name = "ClickHouse"
    data = "MergeTree tables of its own in the page cache"
    queries = "our SQL"
    comparison: Comparison = CLOSE

    def __init__(self, path: Path, threads: int) -> None:
        """Connect."""
        self._session = open_clickhouse(path, threads)
        self._session.query(f"USE {DATABASE}")

    @property
    def version(self) -> str:
        """Of ClickHouse and of the package."""
        import chdb  # noqa: PLC0415 (open already)

        found = str(self._session.query("SELECT version()", "TSV")).strip()
        return f"{found}, chdb {chdb.__version__}"

    def warm(self, questions: Sequence[Asked]) -> None:
        """Its first answer does that."""

    def prepare(self, asked: Asked) -> Run:
        """The text is what there is."""
        text = asked.sql.strip().removesuffix(";")

        def run() -> pa.Table:
            try:
                answer: pa.Table = self._session.query(text, "ArrowTable")
            except RuntimeError as error:  # what chdb raises
                words = " ".join(str(error).split())
                kind = RefusedError if any(name in words for name in _REFUSALS) else BamQueryError
                raise kind(f"ClickHouse: {words[:_LONGEST]}") from error
            return answer

        return run

    def floor(self) -> None:
        """It does not say what it read."""

    def close(self) -> None:
        """Disconnect."""
        self._session.close()


def open_clickhouse(path: Path, threads: int) -> Any:
    """A session over a folder.

    Raises:
        BamQueryError: it is not installed.
    """
    try:
        session: Any = importlib.import_module("chdb.session")
    except ImportError as error:
        raise BamQueryError(
            'comparing with ClickHouse needs chdb, which is not installed: pip install "bamquery[formats]"'
        ) from error
    opened: Any = session.Session(str(path))
    opened.query(f"SET max_threads = {threads}")
    return opened
