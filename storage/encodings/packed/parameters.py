"""Decode parameters of packed vectors, 16 bytes each: storage/core/packed_vector.hpp for numpy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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

RAW_BITS: Final = 64
UNIT: Final = 16
"""Bytes of which payloads have a whole number."""


def forms(parameters: NDArray[Any]) -> NDArray[np.uint8]:
    """The form of each vector."""
    return np.asarray(parameters["exponent_form"] >> 5, np.uint8)


def exponents(parameters: NDArray[Any]) -> NDArray[np.uint8]:
    """The decimal exponent of each vector."""
    return np.asarray(parameters["exponent_form"] & 31, np.uint8)


def escapes(parameters: NDArray[Any]) -> NDArray[np.int64]:
    """How many escapes each vector has."""
    return (parameters["escapes_nulls"] & 0x3FFF).astype(np.int64)


def has_nulls(parameters: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each vector has nulls."""
    return np.asarray(parameters["escapes_nulls"] >> 15 != 0, np.bool_)


def payload_starts(parameters: NDArray[Any]) -> NDArray[np.int64]:
    """Where each payload starts in the column's data, in bytes."""
    return parameters["offset"].astype(np.int64) * UNIT
