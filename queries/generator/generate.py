"""Generated tables: batches of rows, in parallel, and into a database."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa

from bamquery.queries.generator.chunk import Chunk
from bamquery.queries.generator.columns import GENERATED, column
from bamquery.queries.generator.model import Model
from bamquery.queries.generator.permutation import Permutation
from bamquery.queries.schema import TRIPS
from bamquery.storage.database import Database
from bamquery.storage.ingest import Progress

Order = Literal["time", "random", "clustered"]
ORDERS: Final[tuple[Order, ...]] = get_args(Order)
# The columns of Q5.
Q5_COLUMNS: Final = (
    "trip_distance",
    "total_amount",
    "extra",
    "improvement_surcharge",
    "tolls_amount",
    "mta_tax",
)
# Small enough that a chunk's arrays stay in a core's cache.
BATCH_ROWS: Final = 1 << 15


@dataclass(frozen=True)
class Recipe:
    """What to generate. Equal recipes give equal bytes, on every machine and with any number of threads.

    Attributes:
        rows: how many.
        columns: names of columns of `trips`, in the order wanted; see GENERATED.
        order: "time" as in TLC's files; "random" the same rows shuffled; "clustered" the same rows by
            ascending distance within each year (nearly: OPTIMIZE ... CLUSTER BY sorts exactly).
        seed: another seed, other rows.
        first_year: 2009 to 2023.
        last_year: first_year or later; the years share the rows like the real ones.
        match_share: share of trips of 30 miles or more, or None for that of the real files.
        nulls: False fills every null: charges with zero, codes and places with likely values.
    """

    rows: int
    columns: Sequence[str] = Q5_COLUMNS
    order: Order = "time"
    seed: int = 1
    first_year: int = 2009
    last_year: int = 2021
    match_share: float | None = None
    nulls: bool = True


class TripGenerator:
    """Makes the rows of a recipe."""

    def __init__(self, recipe: Recipe) -> None:
        """Prepare the tables; the recipe's names and ranges are the caller's to check."""
        assert set(recipe.columns) <= set(GENERATED)
        self.recipe = recipe
        self.schema = pa.schema([TRIPS.field(name) for name in recipe.columns])
        if recipe.rows:
            self._model = Model(
                recipe.rows, recipe.first_year, recipe.last_year, recipe.seed, recipe.match_share
            )
            self._ranks = Permutation(recipe.rows, recipe.seed, "rank")
            self._shuffle = Permutation(recipe.rows, recipe.seed, "shuffle")

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows start to stop - 1 of the table."""
        numbers = np.arange(start, stop, dtype=np.uint64)
        if self.recipe.order == "clustered":
            ranks, rows = numbers, self._ranks.backward(numbers)
        else:
            rows = numbers if self.recipe.order == "time" else self._shuffle.forward(numbers)
            ranks = self._ranks.forward(rows)
        chunk = Chunk(self._model, rows, ranks)
        arrays = [column(chunk, name, nulls=self.recipe.nulls) for name in self.recipe.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def batches(self, threads: int, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """All rows in order, made by several threads; at most two batches a thread are held."""
        starts = range(0, self.recipe.rows, batch_rows)
        pool = ThreadPoolExecutor(threads, thread_name_prefix="generate")
        waiting: deque[Future[pa.RecordBatch]] = deque()
        try:
            for start in starts:
                waiting.append(pool.submit(self.batch, start, min(start + batch_rows, self.recipe.rows)))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def generate(
    database: Database,
    table: str,
    recipe: Recipe,
    *,
    threads: int,
    replace: bool = False,
    progress: Progress | None = None,
) -> None:
    """Make a table of generated rows, in one commit.

    Raises:
        CatalogError: the table exists and `replace` is not set.
        StorageError: the database cannot be written.
    """
    generator = TripGenerator(recipe)
    show = (progress or Progress()).show(f"Generating {table}", recipe.rows)
    with database.create_table(table, generator.schema, or_replace=replace) as writer, show as tell:
        for batch in generator.batches(threads):
            writer.write(batch)
            tell(writer.rows, 0)
        writer.commit()
