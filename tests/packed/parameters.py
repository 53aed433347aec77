"""What bounds decode parameters of packed vectors, by numpy: the oracle of `_native.check_packed_column`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.encodings.packed.parameters import (
    DECIMAL,
    FLOAT32,
    INTEGER,
    RAW,
    RAW_BITS,
    UNIT,
    UNSCALED,
    escapes,
    exponents,
    forms,
    has_nulls,
    payload_starts,
)

MAX_BITS: Final = 56
MAX_ESCAPES: Final = 1023
_MAX_EXPONENT: Final = 15
_PART_ROWS: Final = 128
_BITMAP_BYTES: Final = 128
_DICTIONARY_BITS: Final = 6

WIDTHS: Final = {f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)} | {
    "float32": 4,
    "float64": 8,
    "int128": 16,
    "bool": 1,
}
"""Bytes of a value of each kind; booleans are never raw."""

_FORMS: Final = (
    dict.fromkeys(WIDTHS, (INTEGER, RAW, UNSCALED))
    | dict.fromkeys(("float32", "float64"), (DECIMAL, FLOAT32, RAW))
    | dict.fromkeys(("int128", "bool"), (INTEGER, UNSCALED))
)


def has_short_escapes(parameters: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each vector's escapes are numbers of 4 bytes instead of values of 8."""
    return np.asarray(parameters["escapes_nulls"] >> 14 & 1 != 0, np.bool_)


def referring_rows(parameters: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many rows of each vector are to be expected to have something behind the codes, or plain values.

    `rows` are those of each. See `referring_chance`.
    """
    bits = parameters["bits"]
    among = np.where(bits <= _DICTIONARY_BITS, 1 << np.minimum(bits, _DICTIONARY_BITS).astype(np.int64), rows)
    raw_with_nulls = (forms(parameters) == RAW) & has_nulls(parameters)
    return np.where(raw_with_nulls, rows, rows * np.minimum(escapes(parameters) / among, 1.0))


def payload_bytes(parameters: NDArray[Any], rows: NDArray[np.int64], kind: str) -> NDArray[np.int64]:
    """Bytes of each vector's payload; `rows` are those of each vector."""
    raw = forms(parameters) == RAW
    bits = np.where(raw, 0, parameters["bits"]).astype(np.int64)
    behind = np.where(has_short_escapes(parameters), 4, 8) * escapes(parameters)
    packed = _round_up(-(-rows // _PART_ROWS) * UNIT * bits + behind)
    plain = _round_up(rows * WIDTHS[kind]) + np.where(has_nulls(parameters), _BITMAP_BYTES, 0)
    return np.where(raw, plain, packed)


def find_fault(
    parameters: NDArray[Any], sizes: NDArray[np.int64], kind: str, data_bytes: int
) -> tuple[int, str] | None:
    """The first vector whose parameters are impossible, and why; None if all can be decoded.

    `sizes` are the `payload_bytes` of each vector, `data_bytes` those of the column's data.
    """
    bits = parameters["bits"].astype(np.int64)
    form = forms(parameters)
    raw = form == RAW
    escaped = escapes(parameters)
    special = escaped + has_nulls(parameters)
    codes = np.left_shift(np.int64(1), np.minimum(bits, MAX_BITS))
    checks = (
        (~np.isin(form, _FORMS[kind]), "its form is none of this type"),
        (exponents(parameters) > np.where(form == DECIMAL, _MAX_EXPONENT, 0), "its exponent is impossible"),
        (np.where(raw, bits != RAW_BITS, bits > MAX_BITS), "its codes are too wide"),
        (
            np.where(raw, escaped > 0, (special > codes) | (escaped > MAX_ESCAPES))
            | (has_short_escapes(parameters) & (escaped == 0)),
            "it has more escapes than codes",
        ),
        (
            payload_starts(parameters) + sizes > data_bytes,
            "its values lie outside of the column's data",
        ),
    )
    faulty = np.stack([check for check, _ in checks])
    if not faulty.any():
        return None
    vector = int(np.argmax(faulty.any(axis=0)))
    return vector, checks[int(np.argmax(faulty[:, vector]))][1]


def _round_up(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return -(-sizes // UNIT) * UNIT


def column_fault(
    parameters: NDArray[Any],
    sizes: NDArray[np.int64],
    kind: str,
    data_bytes: int,
    null_counts: NDArray[np.int64],
) -> tuple[int, str] | None:
    """The same of all vectors of a column: payloads fill its data, nulls are where counts know some."""
    fault = find_fault(parameters, sizes, kind, data_bytes)
    if fault is not None:
        return fault
    ends = np.cumsum(sizes)
    gaps = payload_starts(parameters) != np.concatenate([[0], ends[:-1]])
    gaps[-1] |= ends[-1] != data_bytes
    if gaps.any():
        return int(np.argmax(gaps)), "its values do not lie behind those before"
    odd = has_nulls(parameters) != (null_counts > 0)
    return (int(np.argmax(odd)), "whether it has nulls is said in two ways") if odd.any() else None
