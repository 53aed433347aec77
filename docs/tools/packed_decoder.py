"""Packed columns decoded by numpy alone: the layout as code, and what the native decoder is tested by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

PACKED_VECTOR = np.dtype(
    [
        ("offset", "<u4"),  # of the payload in the column's data, in units of 16 bytes
        ("bits", "u1"),  # of a code
        ("exponent_form", "u1"),  # low 5 bits: exponent of a decimal; high 3 bits: form
        ("escapes_nulls", "<u2"),  # 14 bits: escapes; a bit: these have 4 bytes; a bit: there are nulls
        ("base", "<i8"),
    ]
)


def decode_vector(
    parameters: np.void, data: NDArray[np.uint8], rows: int, dtype: Any, scale: tuple[int, int] = (1, 0)
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values of one vector of `rows` rows, and which are no nulls.

    `data` and `scale` (divisor and origin, modulo 2^64) are the column's. Decimals of 128 bits have dtype
    int64, booleans uint8.
    """
    dtype = np.dtype(dtype)
    payload = data[16 * int(parameters["offset"]) :]
    bits = int(parameters["bits"])
    form, exponent = divmod(int(parameters["exponent_form"]), 32)
    flags, escapes = divmod(int(parameters["escapes_nulls"]), 1 << 14)
    nulls, short = divmod(flags, 2)
    if form == 3:  # raw: plain values, and a bitmap behind them
        values = payload[: rows * dtype.itemsize].view(dtype).copy()
        bitmap = payload[-(-values.nbytes // 16) * 16 :][:128] if nulls else np.full(128, 255, np.uint8)
        return values, np.unpackbits(bitmap, count=rows, bitorder="little").astype(bool)

    # Codes lie end to end, in whole parts of 128, and escapes behind them.
    code_bytes = -(-rows // 128) * 16 * bits
    lines = np.unpackbits(payload[:code_bytes], count=rows * bits, bitorder="little").reshape(rows, bits)
    codes = lines.astype(np.uint64) @ (np.uint64(1) << np.arange(bits, dtype=np.uint64))
    base = np.array(int(parameters["base"]) % 2**64, np.uint64)

    def values_of(numbers: NDArray[np.uint64]) -> NDArray[Any]:
        if form == 0:  # integer
            divisor, origin = np.array(scale, np.uint64)
            return (numbers * divisor + origin).astype(dtype)
        if form == 1:  # decimal, correctly rounded
            return (numbers.view(np.int64).astype(np.float64) / float(f"1e{exponent}")).astype(dtype)
        if form == 2:  # float32, by its place among all of them
            places = numbers.astype(np.uint32)
            float_bits = np.where(places >> 31 == 1, places ^ np.uint32(1 << 31), ~places)
            return float_bits.view(np.float32).astype(dtype)
        return numbers.astype(dtype)  # integer without divisor and origin

    # The last codes are special: escapes, and NULL as the very last.
    first = (1 << bits) - escapes - nulls
    if short:  # numbers, too
        above = payload[code_bytes:][: 4 * escapes].view(np.int32).astype(np.int64).view(np.uint64)
        whole = values_of(base + above)
    else:  # bits of values
        whole = payload[code_bytes:][: 8 * escapes].view(np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    values = values_of(base + codes)
    is_null = codes == (1 << bits) - 1 if nulls else np.zeros(rows, bool)
    is_escape = (codes >= first) & ~is_null
    values[is_escape] = whole[(codes[is_escape] - np.uint64(first)).astype(np.int64)]
    values[is_null] = np.zeros(1, dtype)
    return values, ~is_null


FSST_VECTOR = np.dtype(
    [
        ("offset", "<u8"),  # of the payload in the column's data, in bytes
        ("plain_bytes", "<u4"),  # of all strings
        ("bits", "u1"),  # of the code that says where a string ends
        ("form", "u1"),  # 0: strings as they are; 1: as codes of symbols
        ("has_nulls", "<u2"),  # whether the lowest bit of a code says that the row is null
        ("part_ends", "<u4", 8),  # where the strings of each 128 rows end, from the first one on
    ]
)


def decode_strings(
    parameters: np.void, data: NDArray[np.uint8], rows: int, symbols: bytes
) -> list[bytes | None]:
    """Strings of one vector of `rows` rows, None for nulls; `data` and `symbols` are the column's."""
    payload, bits = data[int(parameters["offset"]) :], int(parameters["bits"])
    code_bytes = -(-rows // 128) * 16 * bits
    lines = np.unpackbits(payload[:code_bytes], count=rows * bits, bitorder="little").reshape(rows, bits)
    codes = lines.astype(np.int64) @ (1 << np.arange(bits, dtype=np.int64))
    nulls = int(parameters["has_nulls"])
    ends, is_null = codes >> nulls, codes & nulls != 0
    stored = payload[code_bytes:].tobytes()
    table, at = [], 1 + symbols[0]  # a count, as many lengths, and the symbols end to end
    for length in symbols[1 : 1 + symbols[0]]:
        table.append(symbols[at : at + length])
        at += length

    def decode(codes: bytes) -> bytes:
        found, following = b"", iter(codes)
        for code in following:
            found += bytes([next(following)]) if code == 255 else table[code]
        return found

    values: list[bytes | None] = []
    for row in range(rows):
        base = int(parameters["part_ends"][row // 128 - 1]) if row >= 128 else 0
        begin = 0 if row % 128 == 0 else int(ends[row - 1])  # ends count from where their part begins
        own = stored[base + begin : base + int(ends[row])]
        values.append(None if is_null[row] else decode(own) if parameters["form"] == 1 else own)
    return values
