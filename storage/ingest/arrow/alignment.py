"""Columns whose memory begins where processors like it to: Arrow only recommends that of others' memory."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

_BYTES: Final = 8
"""That the address of every buffer is a multiple of."""


def aligned(array: pa.Array[Any]) -> pa.Array[Any]:
    """The array itself, or a copy where a buffer begins anywhere else."""
    if isinstance(array, pa.DictionaryArray):
        indices, dictionary = aligned(array.indices), aligned(array.dictionary)
        if indices is array.indices and dictionary is array.dictionary:
            return array
        return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=array.type.ordered)
    if all(buffer is None or buffer.address % _BYTES == 0 for buffer in array.buffers()):
        return array
    return pa.concat_arrays([array, array.slice(0, 0)])  # of several arrays it makes a new one


def aligned_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same of all columns."""
    given = batch.columns
    columns = [aligned(column) for column in given]
    if all(new is old for new, old in zip(columns, given, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
