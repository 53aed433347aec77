"""A MergeTree table of ClickHouse, which chdb runs in this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from chdb import session
from numpy.typing import NDArray

from bamquery.queries.formats.systems.system import TABLE
from bamquery.queries.questions import Question

_DATABASE: Final = "formats"
_MERGED: Final = "SETTINGS old_parts_lifetime = 1, merge_tree_clear_old_parts_interval_seconds = 1"
"""So that parts go soon after they were merged: after eight minutes, otherwise."""
_MOST_SECONDS: Final = 60.0


class System:
    """One part, so that `_part_offset` is a row's number; ClickHouse's default codec, LZ4."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._path = str(folder / "clickhouse")
        self._settings = f"SETTINGS max_threads = {threads}"
        self._session: Any = None

    def write(self, rows: pa.Table) -> None:
        """In the order of the rows, without an index; columns that have no nulls take none."""
        self.open()
        columns = ", ".join(
            f"{name} {'Nullable(Float64)' if rows[name].null_count else 'Float64'}"
            for name in rows.column_names
        )
        self._run(f"CREATE DATABASE IF NOT EXISTS {_DATABASE} ENGINE = Atomic")
        self._run(
            f"CREATE TABLE {_DATABASE}.{TABLE} ({columns}) ENGINE = MergeTree ORDER BY tuple() {_MERGED}"
        )
        one = "SETTINGS max_threads = 1"  # several would mix the rows
        self._session.query(f"INSERT INTO {_DATABASE}.{TABLE} SELECT * FROM Python(rows) {one}")  # noqa: S608
        self._run(f"OPTIMIZE TABLE {_DATABASE}.{TABLE} FINAL")
        self._wait_for_removal()
        self.close()

    def open(self) -> None:
        """Start it on its folder."""
        self._session = session.Session(self._path)

    def take(self, numbers: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """By `_part_offset`, which is looked at before columns are."""
        chosen = pa.table({"number": numbers.astype(np.uint64)})  # noqa: F841 (the statement names it)
        listed = ", ".join(columns)
        text = (
            f"SELECT {listed} FROM {_DATABASE}.{TABLE} "  # noqa: S608 (names of ours)
            f"WHERE _part_offset IN (SELECT number FROM Python(chosen)) {self._settings}"
        )
        table: pa.Table = self._session.query(text, "ArrowTable")
        return table

    def ask(self, question: Question) -> float | None:
        """The question's SQL."""
        text = question.sql(TABLE).replace(f'"{TABLE}"', f"{_DATABASE}.{TABLE}")
        answer: float | None = self._run(f"{text} {self._settings}", "ArrowTable").column(0)[0].as_py()
        return answer

    def bytes_read(self) -> None:
        """It counts them before compression only."""

    def close(self) -> None:
        """Stop it."""
        self._session.close()

    def _wait_for_removal(self) -> None:
        """Until the parts are gone that the last one was merged from."""
        counted = f"SELECT count() FROM system.parts WHERE database = '{_DATABASE}'"  # noqa: S608
        until = time.monotonic() + _MOST_SECONDS
        while int(str(self._run(counted)).strip()) > 1 and time.monotonic() < until:
            time.sleep(0.1)

    def _run(self, text: str, form: str = "CSV") -> Any:
        return self._session.query(text, form)
