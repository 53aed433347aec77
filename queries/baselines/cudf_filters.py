"""cuDF over a Parquet copy, the filter handed to its reader: row groups that cannot match are skipped."""

from __future__ import annotations

from typing import Any

import cudf

from bamquery.queries.baselines import cudf_parquet
from bamquery.queries.questions import LONG_MILES, Question
from bamquery.queries.trips.parquet_files import column_bytes, parquet_files


class System(cudf_parquet.System):
    """`cudf.read_parquet(columns=..., filters=...)`, then a mean."""

    name = "cuDF read_parquet, filters"

    def bytes_moved(self, question: Question) -> int:
        """Bytes of the columns in row groups that may hold long trips."""
        files = parquet_files(self.files[0])
        return column_bytes(files, question.columns, ("trip_distance", LONG_MILES))

    def _long_trips(self, columns: tuple[str, ...]) -> Any:
        files = [str(file) for file in parquet_files(self.files[0])]
        # Without categories of partitions, of which there are none, libcudf's own reader takes the filter;
        # otherwise pyarrow selects row groups and cuDF filters what it read, which is slower.
        return cudf.read_parquet(
            files,
            columns=list(columns),
            filters=[("trip_distance", ">=", LONG_MILES)],
            categorical_partitions=None,
        )
