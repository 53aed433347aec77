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

MOST_END_BITS: Final = 32
MOST_PLAIN_OF_STORED: Final = 8
UNIT: Final = 16
"""Bytes of which payloads have a whole number."""


def stored_bytes(parameters: NDArray[Any]) -> NDArray[np.int64]:
    """Bytes of each vector's strings as they are stored."""
    return np.asarray(parameters["part_ends"][:, -1], np.int64)


def code_bytes(parameters: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each vector's codes of ends; `rows` are those of each vector."""
    return -(-rows // PART_ROWS) * UNIT * parameters["bits"].astype(np.int64)


def payload_bytes(parameters: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each vector's payload."""
    return -(-(code_bytes(parameters, rows) + stored_bytes(parameters)) // UNIT) * UNIT


def find_fault(parameters: NDArray[Any], rows: NDArray[np.int64], data_bytes: int) -> tuple[int, str] | None:
    """The first vector whose parameters are impossible, and why; None if they can be those of a column.

    `rows` are those of each vector, `data_bytes` those of the column's data, which payloads fill end to end.
    """
    bits, nulls = parameters["bits"].astype(np.int64), parameters["has_nulls"].astype(np.int64)
    ends = parameters["part_ends"].astype(np.int64)
    sizes = np.diff(ends, prepend=0, axis=1)
    no_rows = np.arange(PARTS) * PART_ROWS >= rows[:, None]
    plain, stored = parameters["plain_bytes"].astype(np.int64), stored_bytes(parameters)
    compressed = parameters["form"] == SYMBOLS
    behind = np.cumsum(payload_bytes(parameters, rows))
    begins = np.concatenate([np.zeros(1, np.int64), behind[:-1]])
    gaps = parameters["offset"] != begins.astype(np.uint64)
    if len(behind) and behind[-1] != data_bytes:
        gaps[-1] = True
    checks = (
        ((parameters["form"] > SYMBOLS) | (nulls > 1), "its form is none of strings"),
        ((bits > MOST_END_BITS + nulls) | (bits < nulls), "its ends are too wide"),
        ((sizes < 0).any(axis=1), "its parts do not ascend"),
        (((sizes != 0) & no_rows).any(axis=1), "it has parts without rows"),
        (
            np.where(compressed, plain > MOST_PLAIN_OF_STORED * stored, plain != stored),
            "its strings cannot be as long as it says",
        ),
        (gaps, "its values do not lie behind those before"),
    )
    faulty = np.stack([check for check, _ in checks])
    if not faulty.any():
        return None
    vector = int(np.argmax(faulty.any(axis=0)))
    return vector, checks[int(np.argmax(faulty[:, vector]))][1]
