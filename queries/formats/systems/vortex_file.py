"""A Vortex file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import vortex
import vortex.expr
from numpy.typing import NDArray

from bamquery.queries.formats.systems.system import mean_per_mile
from bamquery.queries.questions import LONG_MILES, Question


class System:
    """Written by its default strategy; a scan with row indices, or with a condition."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._path = str(folder / "trips.vortex")
        vortex.set_worker_threads(threads)
        self._file: Any = None

    def write(self, rows: pa.Table) -> None:
        """One file."""
        vortex.io.write(rows, self._path)

    def open(self) -> None:
        """Read the footer."""
        self._file = vortex.open(self._path)

    def take(self, numbers: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """By its `indices`."""
        indices = vortex.array(pa.array(numbers.astype(np.uint64)))
        table: pa.Table = self._file.to_arrow(projection=list(columns), indices=indices).read_all()
        return table

    def ask(self, question: Question) -> float | None:
        """The condition goes to the scan."""
        condition = vortex.expr.column("trip_distance") >= LONG_MILES
        trips = self._file.to_arrow(projection=list(question.columns), expr=condition).read_all()
        return mean_per_mile(trips, question)

    def bytes_read(self) -> None:
        """It does not count them."""

    def close(self) -> None:
        """Forget the file."""
        self._file = None
