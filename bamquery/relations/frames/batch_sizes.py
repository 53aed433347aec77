"""Batches of as many rows as somebody asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def batches_of(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of `rows` rows, the last one of what is left; about one is in memory.

    What one batch of the input holds is not copied.
    """
    waiting: list[pa.RecordBatch] = []
    missing = rows
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, missing)
            waiting.append(piece)
            start += piece.num_rows
            missing -= piece.num_rows
            if not missing:
                yield _concatenate(waiting)
                waiting, missing = [], rows
    if waiting:
        yield _concatenate(waiting)


def _concatenate(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    one: pa.RecordBatch = pa.concat_batches(pieces)  # type: ignore[attr-defined]
    return one
