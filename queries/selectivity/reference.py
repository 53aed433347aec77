"""The means that answers are checked by, computed by others' code from the Parquet copy."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow.dataset

from bamquery.queries.trips.arrow import compute
from bamquery.queries.trips.parquet_files import parquet_files

_dataset: Final[Any] = pyarrow.dataset


class Reference(Protocol):
    """A Parquet copy of a table, and somebody who can read it."""

    name: str

    def mean(self, amounts: Sequence[str], at_least: float) -> tuple[float | None, int]:
        """Mean of the first amount less the others over trips of some miles, and how many trips there are."""
        ...


def reference(parquet: Path) -> Reference:
    """DuckDB where it is installed, otherwise pyarrow."""
    return DuckDb(parquet) if importlib.util.find_spec("duckdb") else PyArrow(parquet)


class DuckDb:
    """In this process, on all cores."""

    name = "DuckDB"

    def __init__(self, parquet: Path) -> None:
        """Connect."""
        duckdb: Any = importlib.import_module("duckdb")
        paths = ", ".join("'" + str(file).replace("'", "''") + "'" for file in parquet_files(parquet))
        self._connection = duckdb.connect()
        self._connection.execute(f"CREATE VIEW trips AS SELECT * FROM read_parquet([{paths}])")  # noqa: S608

    def mean(self, amounts: Sequence[str], at_least: float) -> tuple[float | None, int]:
        """See `Reference`."""
        text = f"SELECT avg({' - '.join(amounts)}), count(*) FROM trips WHERE trip_distance >= {at_least!r}"  # noqa: S608
        mean, count = self._connection.execute(text).fetchone()
        return mean, count


class PyArrow:
    """A scan with the filter pushed into the Parquet reader; sums of batches are added up here."""

    name = "pyarrow.dataset"

    def __init__(self, parquet: Path) -> None:
        """Read metadata."""
        self._trips = _dataset.dataset([str(file) for file in parquet_files(parquet)])

    def mean(self, amounts: Sequence[str], at_least: float) -> tuple[float | None, int]:
        """See `Reference`."""
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
