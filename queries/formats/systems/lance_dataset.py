"""A Lance dataset."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.queries.formats.systems.system import mean_per_mile
from bamquery.queries.questions import LONG_MILES, Question


class System:
    """Written in the newest version that its library calls stable; `take`, and a scanner with a filter."""

    def __init__(self, folder: Path, threads: int) -> None:
        os.environ["LANCE_CPU_THREADS"] = str(threads)  # looked at when it is imported
        import lance  # noqa: PLC0415

        self._lance: Any = lance
        self._path = folder / "trips.lance"
        self._trips: Any = None

    def write(self, rows: pa.Table) -> None:
        """All of it in one file."""
        options = {"data_storage_version": "stable", "max_rows_per_file": max(rows.num_rows, 1)}
        self._lance.write_dataset(rows, str(self._path), **options)

    def open(self) -> None:
        """Read the manifest."""
        self._trips = self._lance.dataset(str(self._path))

    def take(self, numbers: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """By `take`."""
        table: pa.Table = self._trips.take(numbers.tolist(), columns=list(columns))
        return table

    def ask(self, question: Question) -> float | None:
        """The condition goes to the scanner."""
        options = {"columns": list(question.columns), "filter": f"trip_distance >= {LONG_MILES}"}
        return mean_per_mile(self._trips.scanner(**options).to_table(), question)

    def bytes_read(self) -> None:
        """It counts them for scans only."""

    def close(self) -> None:
        """Forget the dataset."""
        self._trips = None
