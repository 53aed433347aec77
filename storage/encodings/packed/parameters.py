"""Decode parameters of packed vectors, 16 bytes each: storage/core/packed_vector.hpp for numpy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.format.layout import VECTOR_ROWS

PACKED_VECTOR: Final = np.dtype(
    [
        ("offset", "<u4"),
        ("bits", "u1"),
        ("exponent_form", "u1"),
        ("escapes_nulls", "<u2"),
        ("base", "<i8"),
    ]
)
"""`offset` in units of 16 bytes; 5 bits of exponent below 3 of form; 14 bits of escapes, a bit whether these
are short, a bit for nulls."""

INTEGER, DECIMAL, FLOAT32, RAW, UNSCALED = range(5)
"""Forms: what a number means. See PackedForm."""

PART_ROWS: Final = 128
MAX_BITS: Final = 56
RAW_BITS: Final = 64
MAX_ESCAPES: Final = 1023
MAX_EXPONENT: Final = 15
BITMAP_BYTES: Final = VECTOR_ROWS // 8
UNIT: Final = 16
"""Bytes of which payloads have a whole number."""

WIDTHS: Final[Mapping[str, int]] = MappingProxyType(
    {f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {"float32": 4, "float64": 8, "int128": 16, "bool": 1}
)
"""Bytes of a value of each kind (`storable_types.value_kind`); booleans are never raw."""

_DICTIONARY_BITS: Final = 6
"""Of codes, any of which may be frequent; of wider ones few rows are escapes."""

_FORMS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    dict.fromkeys(WIDTHS, (INTEGER, RAW, UNSCALED))
    | dict.fromkeys(("float32", "float64"), (DECIMAL, FLOAT32, RAW))
    | dict.fromkeys(("int128", "bool"), (INTEGER, UNSCALED))
)


def forms(parameters: NDArray[Any]) -> NDArray[np.uint8]:
    """The form of each vector."""
    return np.asarray(parameters["exponent_form"] >> 5, np.uint8)


def exponents(parameters: NDArray[Any]) -> NDArray[np.uint8]:
    """The decimal exponent of each vector."""
    return np.asarray(parameters["exponent_form"] & 31, np.uint8)


def escapes(parameters: NDArray[Any]) -> NDArray[np.int64]:
    """How many escapes each vector has."""
    return (parameters["escapes_nulls"] & 0x3FFF).astype(np.int64)


def has_short_escapes(parameters: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each vector's escapes are numbers of 4 bytes instead of values of 8."""
    return np.asarray(parameters["escapes_nulls"] >> 14 & 1 != 0, np.bool_)


def has_nulls(parameters: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each vector has nulls."""
    return np.asarray(parameters["escapes_nulls"] >> 15 != 0, np.bool_)


def referring_rows(parameters: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many rows of each vector are to be expected to have something behind the codes, or plain values.

    `rows` are those of each. See `PackedRows::count_blocks`.
    """
    bits = parameters["bits"]
    among = np.where(bits <= _DICTIONARY_BITS, 1 << np.minimum(bits, _DICTIONARY_BITS).astype(np.int64), rows)
    raw_with_nulls = (forms(parameters) == RAW) & has_nulls(parameters)
    return np.where(raw_with_nulls, rows, rows * np.minimum(escapes(parameters) / among, 1.0))


def payload_starts(parameters: NDArray[Any]) -> NDArray[np.int64]:
    """Where each payload starts in the column's data, in bytes."""
    return parameters["offset"].astype(np.int64) * UNIT


def payload_bytes(parameters: NDArray[Any], rows: NDArray[np.int64], kind: str) -> NDArray[np.int64]:
    """Bytes of each vector's payload; `rows` are those of each vector."""
    raw = forms(parameters) == RAW
    bits = np.where(raw, 0, parameters["bits"]).astype(np.int64)
    behind = np.where(has_short_escapes(parameters), 4, 8) * escapes(parameters)
    packed = _round_up(-(-rows // PART_ROWS) * UNIT * bits + behind)
    plain = _round_up(rows * WIDTHS[kind]) + np.where(has_nulls(parameters), BITMAP_BYTES, 0)
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
        (exponents(parameters) > np.where(form == DECIMAL, MAX_EXPONENT, 0), "its exponent is impossible"),
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
