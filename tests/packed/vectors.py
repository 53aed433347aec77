"""Packed vectors made by hand: every form with any parameters, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.encodings.packed.parameters import DECIMAL, FLOAT32, INTEGER, PACKED_VECTOR, RAW

_PART_ROWS = 128


@dataclass(frozen=True)
class Vector:
    """One vector: its payload, its parameters but for the offset, and what they decode to.

    Attributes:
        values: plain values; of nulls zero.
        valid: which rows are not null.
    """

    payload: bytes
    parameters: Any
    values: NDArray[Any]
    valid: NDArray[np.bool_]


def pack_codes(codes: NDArray[np.uint64], bits: int) -> bytes:
    """Parts of 128 rows, 16 x bits bytes each, least significant bit first."""
    rows = -(-len(codes) // _PART_ROWS) * _PART_ROWS
    padded = np.zeros(rows, np.uint64)
    padded[: len(codes)] = codes
    found = (padded[:, None] >> np.arange(bits, dtype=np.uint64)) & np.uint64(1)
    return np.packbits(found.astype(np.uint8).reshape(-1), bitorder="little").tobytes()


def packed(  # noqa: PLR0917 - a vector's parameters
    codes: Any,
    bits: int,
    form: int = INTEGER,
    base: int = 0,
    exponent: int = 0,
    escapes: Sequence[int] = (),
    *,
    nulls: bool = False,
    short: bool = False,
    dtype: Any = "int64",
    divisor: int = 1,
    origin: int = 0,
) -> Vector:
    """A vector of those codes; `escapes` are bits of values, ascending; `short`: distances from the base."""
    codes = np.asarray(codes, np.uint64)
    size = 4 if short else 8
    stored = b"".join(int(e).to_bytes(size, "little", signed=short) for e in escapes)
    payload = pack_codes(codes, bits) + stored
    first = (1 << bits) - len(escapes) - nulls
    valid = ~((codes == np.uint64((1 << bits) - 1)) & nulls)
    values = np.zeros(len(codes), dtype)
    for row, code in enumerate(codes.tolist()):
        if not valid[row]:
            continue
        if code >= first and not short:
            bits_of = int(escapes[code - first]).to_bytes(8, "little")
            values[row] = np.frombuffer(bits_of[: values.itemsize], dtype)[0]
        else:
            number = base + (int(escapes[code - first]) if code >= first else code)
            values[row] = _decoded(number, form, exponent, np.dtype(dtype), divisor, origin)
    flags = len(escapes) | short << 14 | nulls << 15
    return Vector(
        payload + bytes(-len(payload) % 16),
        np.array((0, bits, form << 5 | exponent, flags, base), PACKED_VECTOR),
        values,
        valid,
    )


def raw(values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Vector:
    """A vector of plain values; `valid`: with nulls."""
    payload = values.tobytes()
    if valid is not None:
        payload += bytes(-len(payload) % 16)
        payload += np.packbits(valid, bitorder="little").tobytes().ljust(128, b"\0")
        values = np.where(valid, values, np.zeros(1, values.dtype))
    return Vector(
        payload + bytes(-len(payload) % 16),
        np.array((0, 64, RAW << 5, 0 if valid is None else 1 << 15, 0), PACKED_VECTOR),
        values,
        np.ones(len(values), np.bool_) if valid is None else valid,
    )


def _decoded(  # noqa: PLR0917 - as packed
    x: int, form: int, exponent: int, dtype: Any, divisor: int, origin: int
) -> Any:
    if form == DECIMAL:
        return dtype.type(np.float64(x) / np.float64(10**exponent))
    if form == FLOAT32:
        bits = x ^ 0x80000000 if x & 0x80000000 else x ^ 0xFFFFFFFF
        return dtype.type(np.array(bits, np.uint32).view(np.float32))
    if form == INTEGER:
        x = x * divisor + origin
    return np.array(x % (1 << 64), np.uint64).astype(dtype)
