"""pyarrow.dataset over a Parquet file."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset

from bamquery.queries.questions import LONG_MILES, Question
from bamquery.queries.systems import Answer
from bamquery.queries.trips.arrow import compute
from bamquery.queries.trips.parquet_files import column_bytes, parquet_files

_dataset: Final[Any] = pyarrow.dataset


class System:
    """A scan with filter and projection pushed into the Parquet reader, then a mean."""

    name = "pyarrow.dataset"

    def __init__(self, parquet: Path) -> None:
        """Nothing is opened yet."""
        self.files = [parquet]
        self._trips: Any = None

    def open(self) -> None:
        """Read metadata."""
        self._trips = _dataset.dataset([str(file) for file in parquet_files(self.files[0])])

    def ask(self, question: Question) -> Answer:
        """Scan for the quotients and average them; nulls do not count, as in SQL."""
        first, *others = (_dataset.field(name) for name in question.amounts)
        amount = reduce(lambda left, right: left - right, others, first)
        quotients = self._trips.to_table(
            columns={"quotient": amount / _dataset.field("trip_distance")}, filter=self._long()
        )
        return Answer(compute.mean(quotients["quotient"]).as_py())

    def bytes_moved(self, question: Question) -> int:
        """Bytes of the columns in row groups that may hold long trips."""
        files = parquet_files(self.files[0])
        return column_bytes(files, question.columns, ("trip_distance", LONG_MILES))

    def count(self) -> int:
        """Long trips."""
        count: int = self._trips.count_rows(filter=self._long())
        return count

    def close(self) -> None:
        """Forget the files."""
        self._trips = None

    @staticmethod
    def _long() -> Any:
        return _dataset.field("trip_distance") >= LONG_MILES
