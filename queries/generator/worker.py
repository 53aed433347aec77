"""One process of several that generate a table: every n-th batch of a recipe, as an Arrow stream.

`python -m bamquery.queries.generator.worker` takes a pickled `Share` on its standard input and writes the
batches to its standard output. It ends when nobody reads them any more.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from bamquery.queries.generator.generate import BATCH_ROWS, TripGenerator
from bamquery.queries.generator.recipe import Recipe
from bamquery.queries.trips.arrow import arrow

GROUPED: Final = 4
"""Batches that are sent as one where that changes no fragment: longer ones are written without a copy."""


@dataclass(frozen=True)
class Share:
    """What one of `of` processes makes: batches `number`, `number` + `of`, ..."""

    recipe: Recipe
    number: int
    of: int

    @property
    def batch_rows(self) -> int:
        """Rows of a batch as it is sent.

        Where a fragment ends depends on the bytes of batches, which nulls make differ.
        """
        return BATCH_ROWS if self.recipe.nulls else GROUPED * BATCH_ROWS

    def starts(self) -> range:
        """First rows of its batches."""
        return range(self.number * self.batch_rows, self.recipe.rows, self.of * self.batch_rows)


def batches(share: Share) -> Iterator[pa.RecordBatch]:
    """A share's batches in order; computed in pieces whose arrays stay in a core's cache."""
    generator = TripGenerator(share.recipe)
    for start in share.starts():
        stop = min(start + share.batch_rows, share.recipe.rows)
        pieces = [
            generator.batch(first, min(first + BATCH_ROWS, stop)) for first in range(start, stop, BATCH_ROWS)
        ]
        if len(pieces) == 1:
            yield pieces[0]
        else:
            yield pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]


def main() -> None:
    """Make the share that standard input tells of."""
    share = pickle.load(sys.stdin.buffer)  # noqa: S301 (from the process that started this one)
    output: Any = sys.stdout.buffer
    with arrow.ipc.new_stream(output, TripGenerator(share.recipe).schema) as writer:
        for batch in batches(share):
            writer.write_batch(batch)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        # Whoever wanted the rows is gone; Python would complain once more when it flushes at its end.
        sys.stderr.close()
        sys.exit(1)
