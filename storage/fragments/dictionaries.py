"""One dictionary for a whole fragment, from chunks that each bring their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery import _native
from bamquery.storage.files.buffers import view
from bamquery.storage.format.file_region import FileTail
from bamquery.storage.format.layout import DictionaryLayout
from bamquery.storage.format.storable_types import is_string_like, value_bits


def unify(type_: pa.DictionaryType[Any, Any], chunks: Iterable[Any]) -> Any:
    """The distinct values that rows of `chunks` have, sorted, without null.

    Sorted, so that the smallest index is the smallest value, and equal columns make equal files.

    Raises:
        ValueError: they are more than the index type can count, or strings that are not UTF-8.
    """
    values = pa.array([], type_.value_type)
    dictionary: Any = values
    used = np.zeros(0, np.bool_)
    for chunk in chunks:
        if not chunk.dictionary.equals(dictionary):
            values = _merge_values(values, dictionary, used)
            dictionary = chunk.dictionary
            used = np.zeros(len(dictionary), np.bool_)
        used[chunk.indices.drop_null().to_numpy(zero_copy_only=False)] = True
    values = _merge_values(values, dictionary, used)
    largest = int(np.iinfo(type_.index_type.to_pandas_dtype()).max)
    if len(values) - 1 > largest:
        raise ValueError(
            f"{len(values)} different values do not fit {type_}: cast the column to its value type, or to a "
            "dictionary with wider indexes"
        )
    values.validate(full=True)  # strings that are not UTF-8
    return values.take(pc.array_sort_indices(values))


class Reindexer:
    """Turns chunks with dictionaries of their own into indexes of one dictionary."""

    def __init__(self, type_: pa.DictionaryType[Any, Any], values: Any) -> None:
        self._type = type_
        self._values = values
        self._dictionary: Any = None
        self._mapping: Any = None

    def __call__(self, chunk: Any) -> Any:
        """Indexes of the type's index type; null where a row is null, in itself or in its dictionary."""
        if self._dictionary is None or not chunk.dictionary.equals(self._dictionary):
            self._dictionary = chunk.dictionary
            self._mapping = pc.index_in(chunk.dictionary, value_set=self._values).cast(self._type.index_type)
        return self._mapping.take(chunk.indices)


def write_dictionary(tail: FileTail, values: pa.Array[Any]) -> DictionaryLayout:
    """Write the values' buffers, and say where they are."""
    offsets, contents = plain_buffers(values)
    stored = None if offsets is None else tail.append([offsets])
    return DictionaryLayout(
        size=len(values),
        offsets=stored,
        values=tail.append([contents]),
        offsets_crc=0 if offsets is None else _native.crc32c(offsets),
        values_crc=_native.crc32c(contents),
    )


def plain_buffers(values: Any) -> tuple[memoryview | None, memoryview]:
    """Offsets (strings only) and values of an array without nulls, from its first row on and nothing else."""
    buffers = values.buffers()
    if pa.types.is_boolean(values.type):
        bits = np.zeros(-(-len(values) // 8), np.uint8)
        if len(values):
            _native.copy_bits(buffers[1], values.offset, len(values), bits, 0)
        return None, view(bits)
    if is_string_like(values.type):
        ends = np.zeros(len(values) + 1, np.int64)
        data = np.empty(0, np.uint8)
        if len(values):
            contents = view(buffers[2])
            ends[1:] = _native.string_ends(
                buffers[1], values.offset, len(values), contents.nbytes, None, 0, 0
            )
            data = np.empty(int(ends[-1]), np.uint8)
            _native.copy_strings(buffers[1], values.offset, len(values), contents, None, 0, data)
        return view(ends), view(data)
    width = value_bits(values.type) // 8
    if not len(values):
        return None, memoryview(b"")
    return None, view(buffers[1])[values.offset * width : (values.offset + len(values)) * width]


def _merge_values(values: Any, dictionary: Any, used: Any) -> Any:
    seen = dictionary.filter(pa.array(used)).drop_null()
    return pc.unique(pa.concat_arrays([values, seen])) if len(seen) else values
