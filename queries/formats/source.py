"""The rows that all formats get, once as an Arrow file, and what pyarrow alone says of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from bamquery.errors import StorageError
from bamquery.queries.formats.systems.system import mean_per_mile
from bamquery.queries.generator.generate import TripGenerator
from bamquery.queries.generator.processes import batches_from_processes
from bamquery.queries.generator.recipe import Recipe
from bamquery.queries.questions import COLUMNS, LONG_MILES, question
from bamquery.queries.trips.arrow import arrow, compute
from bamquery.queries.trips.parquet_files import parquet_files

TAKEN_COLUMNS: Final = COLUMNS[1:]
"""Five columns: all of Q5's but its filter's."""
_MATCH_SHARE: Final = 0.0003
_FEW_ROWS: Final = 5_000
_FEW_LONG_TRIPS: Final = 100
_parquet: Final[Any] = pyarrow.parquet


def generate_rows(path: Path, rows: int, threads: int) -> None:
    """Write generated trips, in random order: Q5's columns without nulls, 0.03 % of at least 30 miles."""
    recipe = Recipe(rows=rows, columns=COLUMNS, order="random", match_share=_MATCH_SHARE, nulls=False)
    generator = TripGenerator(recipe)
    alone = threads == 1 or rows < 1_000_000
    batches = generator.batches(threads) if alone else batches_from_processes(recipe, threads)
    with arrow.ipc.new_file(str(path), generator.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def copy_rows(path: Path, source: Path) -> None:
    """Write the columns of Q5 of a Parquet file of trips, or of a folder of such files.

    Raises:
        StorageError: it cannot be read, or lacks a column.
    """
    schema = pa.schema([pa.field(name, pa.float64()) for name in COLUMNS])
    try:
        with arrow.ipc.new_file(str(path), schema) as writer:
            for file in parquet_files(source):
                with _parquet.ParquetFile(file) as opened:
                    missing = [name for name in COLUMNS if name not in opened.schema_arrow.names]
                    if missing:
                        raise StorageError(f"has no column {', '.join(missing)}: Q5 needs it", file)
                    for batch in opened.iter_batches(columns=list(COLUMNS)):
                        writer.write_batch(batch.select(COLUMNS).cast(schema))
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"cannot be read as Parquet of trips: {error}", source) from error


def write_rows(path: Path, rows: pa.Table) -> None:
    """Write a table as `read_rows` reads it."""
    with arrow.ipc.new_file(str(path), rows.schema) as writer:
        writer.write_table(rows)


def read_rows(path: Path) -> pa.Table:
    """What was written, as a table over the file's mapping."""
    with arrow.ipc.open_file(pa.memory_map(str(path))) as file:
        table: pa.Table = file.read_all()
    return table


def chosen_rows(rows: int, count: int, seed: int = 1) -> NDArray[np.int64]:
    """Numbers of `count` random rows, or of all where there are no more; ascending, each once."""
    if count >= rows:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def few_rows(rows: pa.Table) -> pa.Table:
    """Some of them, with trips that Q5 is about: what is asked before anything is measured."""
    return pa.concat_tables([rows.slice(0, _FEW_ROWS), _long_trips(rows).slice(0, _FEW_LONG_TRIPS)])


def reference_take(rows: pa.Table, numbers: NDArray[np.int64]) -> pa.Table:
    """What every format has to give for those numbers, in the order of `sorted_rows`."""
    places: Any = pa.array(numbers)
    return sorted_rows(rows.select(TAKEN_COLUMNS).take(places), TAKEN_COLUMNS)


def reference_answer(rows: pa.Table) -> float | None:
    """Q5's."""
    return mean_per_mile(_long_trips(rows), question("q5"))


def _long_trips(rows: pa.Table) -> pa.Table:
    found: pa.Table = rows.filter(compute.greater_equal(rows["trip_distance"], LONG_MILES))
    return found


def sorted_rows(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows in the order of their values, so that equal sets of rows are equal tables."""
    chosen = table.select(list(columns)).combine_chunks()
    ordered: pa.Table = chosen.sort_by([(name, "ascending") for name in columns]).combine_chunks()
    return ordered
