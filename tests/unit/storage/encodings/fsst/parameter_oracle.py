"""What bounds parameters of vectors of strings, by numpy: the oracle of `_native.check_fsst_column`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.encodings.fsst.parameters import PART_ROWS, PARTS, SYMBOLS, stored_bytes

_MOST_END_BITS: Final = 32
_MOST_PLAIN_OF_STORED: Final = 8
_UNIT: Final = 16


def code_bytes(parameters: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each vector's codes of ends; `rows` are those of each vector."""
    return -(-rows // PART_ROWS) * _UNIT * parameters["bits"].astype(np.int64)


def payload_bytes(parameters: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each vector's payload."""
    return -(-(code_bytes(parameters, rows) + stored_bytes(parameters)) // _UNIT) * _UNIT


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
        ((bits > _MOST_END_BITS + nulls) | (bits < nulls), "its ends are too wide"),
        ((sizes < 0).any(axis=1), "its parts do not ascend"),
        (((sizes != 0) & no_rows).any(axis=1), "it has parts without rows"),
        (
            np.where(compressed, plain > _MOST_PLAIN_OF_STORED * stored, plain != stored),
            "its strings cannot be as long as it says",
        ),
        (gaps, "its values do not lie behind those before"),
    )
    faulty = np.stack([check for check, _ in checks])
    if not faulty.any():
        return None
    vector = int(np.argmax(faulty.any(axis=0)))
    return vector, checks[int(np.argmax(faulty[:, vector]))][1]
