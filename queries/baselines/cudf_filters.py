"""cuDF over a Parquet copy, the filter handed to its reader: row groups that cannot match are skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cudf

from bamquery.queries.baselines.cudf_frames import finished, mean_of, prepare
from bamquery.queries.parquet_files import column_bytes, parquet_files
from bamquery.queries.questions import LONG_MILES, Question
from bamquery.queries.systems import Answer


class System:
    """`cudf.read_parquet(columns=..., filters=...)`, then a mean."""

    name = "cuDF read_parquet, filters"

    def __init__(self, parquet: Path) -> None:
        """Nothing is opened yet."""
        self.files = [parquet]

    def open(self) -> None:
        """Find the GPU."""
        prepare(self.name)

    def ask(self, question: Question) -> Answer:
        """Read the question's columns of long trips, average."""
        with finished(self.name, f"{question.name.upper()}'s columns"):
            value = mean_of(self._read(question.columns), question)
        return Answer(value)

    def moved(self, question: Question) -> int:
        """Bytes of the columns in row groups that may hold long trips."""
        files = parquet_files(self.files[0])
        return column_bytes(files, question.columns, ("trip_distance", LONG_MILES))

    def count(self) -> int:
        """Long trips."""
        with finished(self.name, "its distances"):
            return len(self._read(("trip_distance",)))

    def close(self) -> None:
        """Nothing is held."""

    def _read(self, columns: tuple[str, ...]) -> Any:
        files = [str(file) for file in parquet_files(self.files[0])]
        # Without categories of partitions, of which there are none, libcudf's own reader takes the filter;
        # otherwise pyarrow selects row groups and cuDF filters what it read, which is slower.
        return cudf.read_parquet(
            files,
            columns=list(columns),
            filters=[("trip_distance", ">=", LONG_MILES)],
            categorical_partitions=None,
        )
