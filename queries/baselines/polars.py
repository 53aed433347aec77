"""Polars over a Parquet file."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import polars

from bamquery.queries.questions import LONG_MILES, Question
from bamquery.queries.systems import Answer
from bamquery.queries.trips.parquet_files import parquet_files


class System:
    """A lazy query, so that filter and projection are pushed into the Parquet reader."""

    name = "Polars"

    def __init__(self, parquet: Path) -> None:
        """Nothing is opened yet."""
        self.files = [parquet]
        self._trips: Any = None

    def open(self) -> None:
        """Read metadata."""
        self._trips = polars.scan_parquet(parquet_files(self.files[0]))

    def ask(self, question: Question) -> Answer:
        """Average the quotients of the long trips."""
        first, *others = (polars.col(name) for name in question.amounts)
        amount = reduce(lambda left, right: left - right, others, first)
        return Answer(self._long().select((amount / polars.col("trip_distance")).mean()).collect().item())

    def bytes_moved(self, _question: Question) -> None:
        """Unknown: pages that cannot match may be skipped."""

    def count(self) -> int:
        """Long trips."""
        count: int = self._long().select(polars.len()).collect().item()
        return count

    def close(self) -> None:
        """Forget the files."""
        self._trips = None

    def _long(self) -> Any:
        return self._trips.filter(polars.col("trip_distance") >= LONG_MILES)
