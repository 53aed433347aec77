"""cuDF over a Parquet copy: whole columns are read, decoded and filtered on the GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cudf

from bamquery.queries.baselines.cudf_frames import long_trips, mean_of, prepare, synchronise
from bamquery.queries.questions import Question
from bamquery.queries.systems import Answer
from bamquery.queries.trips.parquet_files import column_bytes, parquet_files


class System:
    """`cudf.read_parquet(columns=...)`, then a filter and a mean."""

    name = "cuDF read_parquet"

    def __init__(self, parquet: Path) -> None:
        """Nothing is opened yet."""
        self.files = [parquet]

    def open(self) -> None:
        """Find the GPU."""
        prepare(self.name)

    def ask(self, question: Question) -> Answer:
        """Read the question's columns, filter, average."""
        with synchronise(self.name, f"{question.name.upper()}'s columns"):
            value = mean_of(self._long_trips(question.columns), question)
        return Answer(value)

    def bytes_moved(self, question: Question) -> int:
        """Bytes that the columns take in the files: all of them are read."""
        return column_bytes(parquet_files(self.files[0]), question.columns)

    def count(self) -> int:
        """Long trips."""
        with synchronise(self.name, "its distances"):
            return len(self._long_trips(("trip_distance",)))

    def close(self) -> None:
        """Nothing is held."""

    def _long_trips(self, columns: tuple[str, ...]) -> Any:
        files = [str(file) for file in parquet_files(self.files[0])]
        return long_trips(cudf.read_parquet(files, columns=list(columns)))
