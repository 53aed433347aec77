"""Values of Arrow's extension types, and of INTERVAL → values as BamQuery has them."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array: TypeAlias = "pa.Array[Any]"
"""Short for annotations."""

_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_BYTES: Final = 16
_UUID_LENGTH: Final = 36
_INTERVAL: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_UUID_DASHES: Final = (8, 13, 18, 23)


def plain(array: Any) -> Any:
    """Truth values of bool8, strings of UUIDs; of any other extension what it is made of."""
    if isinstance(array.type, pa.Bool8Type):
        return array.storage.cast(pa.bool_())
    if isinstance(array.type, pa.UuidType):
        return _uuid_strings(array.storage)
    return array.storage


def whole_microseconds(intervals: Any) -> Array:
    """INTERVAL without what is less than a microsecond, as DuckDB has it."""
    content = intervals.buffers()[1]
    parts = np.frombuffer(b"" if content is None else content, _INTERVAL)
    rest = parts["nanoseconds"] % 1000
    if not rest.any():
        return intervals  # type: ignore[no-any-return]
    cut = parts.copy()
    cut["nanoseconds"] -= rest
    buffers = [intervals.buffers()[0], pa.py_buffer(cut.tobytes())]
    return pa.Array.from_buffers(intervals.type, len(intervals), buffers, offset=intervals.offset)


def _uuid_strings(array: Any) -> Array:
    """As `str(uuid.UUID)` writes them."""
    first = array.offset * _UUID_BYTES
    content = array.buffers()[1]
    stored = np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    octets = stored[first : first + len(array) * _UUID_BYTES].reshape(len(array), _UUID_BYTES)
    strings = np.full((len(array), _UUID_LENGTH), ord("-"), np.uint8)
    places = [i for i in range(_UUID_LENGTH) if i not in _UUID_DASHES]
    strings[:, places[0::2]] = _HEX[octets >> 4]
    strings[:, places[1::2]] = _HEX[octets & 15]
    # Offsets go on also over nulls, whose bytes are there too.
    offsets = np.arange(len(array) + 1, dtype=np.int64) * _UUID_LENGTH
    written: Array = pa.LargeStringArray.from_buffers(
        len(array), pa.py_buffer(offsets.data), pa.py_buffer(strings.data)
    )
    return pc.if_else(array.is_valid(), written, None) if array.null_count else written
