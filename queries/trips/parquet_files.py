"""A Parquet copy as its readers see it: a file, or a folder of files; and how many bytes they read of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet

_parquet: Final[Any] = pyarrow.parquet


def parquet_files(path: Path) -> list[Path]:
    """The file itself, or the files `*.parquet` of a folder in the order of their names."""
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def column_bytes(
    files: Sequence[Path], columns: Sequence[str], at_least: tuple[str, float] | None = None
) -> int:
    """Compressed bytes of some columns, those of all row groups.

    With `at_least` (a column and a number), of the row groups that may have such a value or a greater one, as
    their statistics say: what a reader reads that skips row groups and nothing finer.
    """
    total = 0
    for file in files:
        metadata = _parquet.read_metadata(file)
        places = {metadata.schema.column(place).path: place for place in range(metadata.num_columns)}
        wanted = [places[name] for name in columns]
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if at_least is not None and _all_below(group.column(places[at_least[0]]), at_least[1]):
                continue
            total += sum(group.column(place).total_compressed_size for place in wanted)
    return total


def _all_below(column: Any, least: float) -> bool:
    statistics = column.statistics
    return bool(statistics is not None and statistics.has_min_max and statistics.max < least)
