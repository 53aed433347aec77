"""What each format can be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.queries.questions import Question
from bamquery.queries.trips.arrow import compute

TABLE: Final = "trips"
"""What the rows are called where they have a name."""


class FormatSystem(Protocol):
    """The rows in one format, within one folder."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Nothing is opened, and no file is there yet."""
        ...

    def write(self, rows: pa.Table) -> None:
        """Make the files."""
        ...

    def open(self) -> None:
        """Get ready; what a program does once."""
        ...

    def take(self, numbers: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Rows by their numbers, which are ascending and unique; in any order."""
        ...

    def ask(self, question: Question) -> float | None:
        """The answer to one of Q1 to Q5."""
        ...

    def bytes_read(self) -> int | None:
        """Of the last answer, as the system itself counts them; None where it does not."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


def mean_per_mile(trips: pa.Table, question: Question) -> float | None:
    """A question's answer over the trips that it is about, by pyarrow: for formats without a query engine."""
    if not trips.num_rows:
        return None
    columns: list[Any] = [trips[name] for name in question.amounts]
    amount = reduce(compute.subtract, columns)
    answer: float | None = compute.mean(compute.divide(amount, trips["trip_distance"])).as_py()
    return answer
