"""The means that answers are checked by, computed by pyarrow from the Parquet copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset

from bamquery.queries.arrow import compute
from bamquery.queries.parquet_files import parquet_files

_dataset: Final[Any] = pyarrow.dataset


class Reference:
    """A Parquet copy of a table."""

    name = "pyarrow.dataset"

    def __init__(self, parquet: Path) -> None:
        """Read metadata."""
        self._trips = _dataset.dataset([str(file) for file in parquet_files(parquet)])

    def mean(self, amounts: Sequence[str], at_least: float) -> tuple[float | None, int]:
        """Mean of the first amount less the others over trips of some miles, and how many trips there are."""
        first, *others = (_dataset.field(name) for name in amounts)
        amount = reduce(lambda left, right: left - right, others, first)
        long = _dataset.field("trip_distance") >= at_least
        total, counted, rows = 0.0, 0, 0
        for batch in self._trips.to_batches(columns={"amount": amount}, filter=long):
            column = batch.column("amount")
            rows += batch.num_rows
            counted += batch.num_rows - column.null_count
            total += compute.sum(column).as_py() or 0.0
        return (total / counted if counted else None), rows
