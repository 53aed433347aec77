"""What vectors of strings are read by, 48 bytes each: `StringVector` of storage/native/packed/fsst."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.format.layout import VECTOR_ROWS

PART_ROWS: Final = 128
PARTS: Final = VECTOR_ROWS // PART_ROWS

FSST_VECTOR: Final = np.dtype(
    [
        ("offset", "<u8"),
        ("plain_bytes", "<u4"),
        ("bits", "u1"),
        ("form", "u1"),
        ("has_nulls", "<u2"),
        ("part_ends", "<u4", PARTS),
    ]
)
"""`offset` of the payload in bytes; `bits` of the code of an end; `part_ends` count from the first string."""

SYMBOLS_BY_CODE: Final = np.dtype([("bytes", "<u8", 256), ("lengths", "u1", 256)])
"""A column's symbols by their codes, the first byte least significant; length 0: the code is none's."""

BYTES, SYMBOLS = range(2)
"""Forms: strings as they are, and as codes of symbols."""


def stored_bytes(parameters: NDArray[Any]) -> NDArray[np.int64]:
    """Bytes of each vector's strings as they are stored."""
    return np.asarray(parameters["part_ends"][:, -1], np.int64)
