"""Generated tables: batches of rows, in parallel, and into a database."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Final

import numpy as np
import pyarrow as pa

from bamquery.queries.generator.chunk import Chunk
from bamquery.queries.generator.columns import column
from bamquery.queries.generator.model import Model
from bamquery.queries.generator.permutation import Permutation
from bamquery.queries.generator.recipe import COLUMNS, Recipe
from bamquery.queries.trips.schema import TRIPS
from bamquery.storage.database.database import Database
from bamquery.storage.format.layout import Encoding
from bamquery.storage.ingest import Progress

# Small enough that a chunk's arrays stay in a core's cache.
BATCH_ROWS: Final = 1 << 15
PROCESS_ROWS: Final = 4_000_000
"""From here on starting processes costs less than they save."""


class TripGenerator:
    """Makes the rows of a recipe."""

    def __init__(self, recipe: Recipe) -> None:
        """Prepare the tables; the recipe's names and ranges are the caller's to check."""
        assert set(recipe.columns) <= set(COLUMNS)
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

    def batches(self, threads: int, batch_rows: int = BATCH_ROWS) -> Generator[pa.RecordBatch, None, None]:
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
    encoding: Encoding = "plain",
    progress: Progress | None = None,
) -> None:
    """Make a table of generated rows, in one commit.

    Large tables are made by `threads` processes, small ones by as many threads; the bytes are the same.
    `encoding` is how the table's columns may be stored.

    Raises:
        CatalogError: the table exists and `replace` is not set.
        StorageError: the database cannot be written.
        BamQueryError: a process that makes rows was killed.
    """
    # Workers import this module, so it imports what starts them late.
    from bamquery.queries.generator.processes import batches_from_processes  # noqa: PLC0415

    generator = TripGenerator(recipe)
    alone = threads == 1 or recipe.rows < PROCESS_ROWS
    batches = generator.batches(threads) if alone else batches_from_processes(recipe, threads)
    show = (progress or Progress()).show(f"Generating {table}", recipe.rows)
    with (
        closing(batches),
        database.create_table(table, generator.schema, or_replace=replace, encoding=encoding) as writer,
        show as tell,
    ):
        for batch in batches:
            writer.write(batch)
            tell(writer.rows, 0)
        writer.commit()
