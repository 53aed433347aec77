"""A Parquet file, read by pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from numpy.typing import NDArray

from bamquery.queries.formats.systems.system import mean_per_mile
from bamquery.queries.questions import LONG_MILES, Question

FILE: Final = "trips.parquet"
_dataset: Final[Any] = pyarrow.dataset
_parquet: Final[Any] = pyarrow.parquet


class System:
    """zstd and otherwise pyarrow's own choices: dictionaries, row groups of a million rows."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._path = folder / FILE
        pa.set_cpu_count(threads)
        self._trips: Any = None

    def write(self, rows: pa.Table) -> None:
        """One file."""
        _parquet.write_table(rows, self._path, compression="zstd")

    def open(self) -> None:
        """Read the footer."""
        self._trips = _dataset.dataset(str(self._path))

    def take(self, numbers: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Whole columns, then rows of them: faster than `Dataset.take`, which decodes them, too."""
        table: pa.Table = self._trips.to_table(columns=list(columns)).take(pa.array(numbers))
        return table

    def ask(self, question: Question) -> float | None:
        """The condition goes to the reader."""
        condition = _dataset.field("trip_distance") >= LONG_MILES
        return mean_per_mile(self._trips.to_table(columns=list(question.columns), filter=condition), question)

    def bytes_read(self) -> None:
        """It does not count them."""

    def close(self) -> None:
        """Forget the file."""
        self._trips = None
