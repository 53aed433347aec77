"""Strings of few distinct values: found out while they pass, as codes of a dictionary that grows.

What was taken for such a column and is none becomes strings again; until then rows are codes of one byte or
two, a quarter of what strings take, or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery import _native
from bamquery.storage.files.buffers import view

_MOST_VALUES: Final = 1 << 16
_MOST_BYTES: Final = 16 << 20
"""Of distinct strings, which are held twice while they grow, and again where others are looked up in them."""
_SLICE_BYTES: Final = 8 << 20
"""Of strings that are looked up together, each of which may be new."""
_BYTE_VALUES: Final = 1 << 8
"""Whose codes take a byte each."""
_LOOKED_AT: Final = 1 << 16
"""Rows after which a column must have few values."""
_FEW: Final = 4
"""Rows, on average, that must share a value."""
_WORTH: Final = 0.9
"""Part of the plain column's bytes above which a dictionary is not worth it."""


class StringDictionary:
    """The distinct strings of a column and the codes of its rows, so long as they are few."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._known: Any = pa.array([], type_)
        self._codes: list[Any] = []
        self._left: pa.Array[Any] | None = None
        self.plain_bytes = 0
        """Bytes of all strings."""
        self._rows = 0

    @property
    def held_bytes(self) -> int:
        """Of memory."""
        return sum(array.nbytes for array in (self._known, *self._codes))

    def add(self, chunk: pa.Array[Any]) -> bool:
        """Take the next strings; False once it is clear that no dictionary is worth it: no more are taken.

        Raises:
            ValueError: offsets are damaged, or a string is not UTF-8.
        """
        self._require_offsets(chunk)
        # Long chunks, and those of long strings, may soon be of too many values.
        step = min(_LOOKED_AT, max(_SLICE_BYTES * len(chunk) // max(chunk.nbytes, 1), 1))
        for start in range(0, len(chunk), step):
            codes = self._encode(chunk.slice(start, step))
            if codes is not None:
                self._rows += len(codes)
            many = self._rows >= _LOOKED_AT and _FEW * len(self._known) > self._rows
            if codes is None or many or len(self._known) > _MOST_VALUES:
                self._left = chunk.slice(start)
                return False
            narrow = len(self._known) <= _BYTE_VALUES
            self._codes.append(codes.cast(pa.uint8() if narrow else pa.uint16()))
        return True

    def _require_offsets(self, chunk: Any) -> None:
        """Arrow trusts them."""
        _, offsets, data = chunk.buffers()
        if len(chunk):
            _native.string_ends(offsets, chunk.offset, len(chunk), view(data).nbytes, None, 0, 0)

    def _encode(self, chunk: Any) -> Any:
        """Codes of these strings; None where the distinct ones take too much with theirs."""
        own = chunk.dictionary_encode()
        places = pc.index_in(own.dictionary, value_set=self._known)
        if places.null_count:
            new = own.dictionary.filter(places.is_null())
            if self._known.nbytes + new.nbytes > _MOST_BYTES:
                return None
            new.validate(full=True)
            self._known = pa.concat_arrays([self._known, new])
            places = pc.index_in(own.dictionary, value_set=self._known)
        codes = places.take(own.indices)
        lengths = pc.binary_length(own.dictionary).to_numpy(zero_copy_only=False)
        used = own.indices.drop_null().to_numpy(zero_copy_only=False)
        self.plain_bytes += int(lengths[used].sum()) if len(used) else 0
        return codes

    @property
    def is_worth(self) -> bool:
        """Whether it takes less than the plain column, of all rows that came."""
        nulls = any(codes.null_count for codes in self._codes)
        bits = max(len(self._known) - 1 + nulls, 0).bit_length()
        kept = self._known.nbytes + self._rows * (bits + 1 / 8) / 8
        return bool(kept < _WORTH * (8 * self._rows + self.plain_bytes))

    def strings(self) -> Iterator[pa.Array[Any]]:
        """All rows that came, where no dictionary is worth it."""
        codes, self._codes = self._codes[::-1], []
        while codes:
            yield self._known.take(codes.pop())
        if self._left is not None:
            left, self._left = self._left, None
            yield left

    def sorted_codes(self) -> tuple[pa.Array[Any], Iterator[pa.Array[Any]]]:
        """The distinct strings in order, and the column as arrays of codes with this dictionary."""
        order = pc.array_sort_indices(self._known).to_numpy()
        ranks = np.empty(len(order), np.int32)
        ranks[order] = np.arange(len(order), dtype=np.int32)
        values = self._known.take(pa.array(order))
        codes, self._codes = self._codes[::-1], []

        def chunks() -> Iterator[pa.Array[Any]]:
            ranked: Any = pa.array(ranks)
            while codes:
                yield pa.DictionaryArray.from_arrays(ranked.take(codes.pop()), values)

        return values, chunks()
