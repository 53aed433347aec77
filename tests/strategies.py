"""Arrow columns as tests want them: the values that break things, and random ones between them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

INTEGERS = (
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
)
FLOATS = (pa.float32(), pa.float64())
DECIMALS = (
    pa.decimal128(1, 1),
    pa.decimal128(4, 1),
    pa.decimal128(18, 3),
    pa.decimal128(19, 0),
    pa.decimal128(38, 0),
    pa.decimal128(38, 10),
    pa.decimal128(38, 37),
)
TIMESTAMPS = (
    pa.timestamp("s"),
    pa.timestamp("ms"),
    pa.timestamp("us"),
    pa.timestamp("ns"),
    pa.timestamp("us", "UTC"),
)
TEMPORALS = (pa.date32(), pa.time64("us"), pa.time64("ns"), *TIMESTAMPS)
STRINGS = (pa.large_string(), pa.large_binary())
PLAIN_TYPES = (pa.bool_(), *INTEGERS, *FLOATS, *DECIMALS, *TEMPORALS, *STRINGS)
DICTIONARIES = (pa.dictionary(pa.int8(), pa.large_string()), pa.dictionary(pa.int32(), pa.int64()))
ALL_TYPES = (*PLAIN_TYPES, *DICTIONARIES)

CHUNK_SIZES = (0, 1, 31, 32, 33, 1023, 1024, 1025)
"""Around bitmap words and vectors."""

_NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
_TEXTS = (
    "",
    "a",
    "A",
    "ab",
    "b",
    "aB\nc",
    " x ",
    "\t",
    "ß",
    "İ",
    "é",
    "👍a",
    "a%b",
    "a_b",
    "a\\b",
    "%",
    "zz" * 20,
)
_SECONDS = (0, 1, -1, 59, 60, 86_399, 86_400, -86_401, 1_577_836_800, 951_782_400, -62_135_596_800)


def specials(kind: pa.DataType) -> list[Any]:
    """Values of a type that are likely to be treated wrongly; stored integers for dates and times."""
    if pa.types.is_dictionary(kind):
        return specials(kind.value_type)
    if pa.types.is_boolean(kind):
        return [True, False]
    if pa.types.is_integer(kind):
        low = 0 if pa.types.is_unsigned_integer(kind) else -(2 ** (kind.bit_width - 1))
        high = low + 2**kind.bit_width - 1
        return [
            v for v in (0, 1, -1, 2, -2, 3, 7, 10, 50, 100, low, low + 1, high, high - 1) if low <= v <= high
        ]
    if pa.types.is_floating(kind):
        return _special_floats(kind)
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        units = (
            0,
            1,
            -1,
            5,
            -5,
            15,
            25,
            -25,
            49,
            50,
            51,
            149,
            150,
            10**kind.scale,
            most,
            -most,
            most - 1,
            most // 2,
        )
        return [scaled(n, kind.scale) for n in units if abs(n) <= most]
    if pa.types.is_large_string(kind):
        return list(_TEXTS)
    if pa.types.is_large_binary(kind):
        return [*(text.encode() for text in _TEXTS), b"\x00", b"\xff\xfe", b"'\"\\"]
    return _special_times(kind)


def scaled(unscaled: int, scale: int) -> Decimal:
    """unscaled / 10**scale, exactly."""
    return Decimal(unscaled).scaleb(-scale, Context(prec=80))


def _special_floats(kind: pa.DataType) -> list[float]:
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 3.0, 100.25, 1e-5, 1e16, 123456.789]
    values += [float("nan"), _NEGATIVE_NAN, float("inf"), float("-inf"), 16777217.0]
    extremes = (
        [3.4028234663852886e38, 1e-45]
        if kind == pa.float32()
        else [1.7976931348623157e308, 5e-324, 2.0**53 + 1]
    )
    return values + extremes + [-v for v in extremes]


def _special_times(kind: pa.DataType) -> list[int]:
    if pa.types.is_date32(kind):
        return [0, 1, -1, 3, 4, 59, 18_262, 11_016, 11_017, -719_162, 2_932_896, 16_436, 364, 365]
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    if pa.types.is_time64(kind):
        day = 86_400 * per_second
        return [0, 1, day - 1, day // 2, per_second, 3_661 * per_second + per_second // 2]
    near = range(-9 * 10**9, 9 * 10**9) if kind.unit == "ns" else range(-(10**12), 10**12)
    seconds = [second for second in _SECONDS if second in near]
    return (
        [s * per_second for s in seconds] + [n + per_second // 2 for n in (-1, 0, 1)] + [-(per_second // 2)]
    )


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of values as `specials` gives them, with nulls."""
    if pa.types.is_dictionary(kind):
        return array(values, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_temporal(kind):
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        return pa.array(values, width).view(kind)
    return pa.array(values, kind)


def random_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Any value of the type that DuckDB also has."""
    if pa.types.is_dictionary(kind):
        return random_values(kind.value_type)
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_integer(kind):
        low = 0 if pa.types.is_unsigned_integer(kind) else -(2 ** (kind.bit_width - 1))
        return st.integers(low, low + 2**kind.bit_width - 1)
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width)
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(lambda n: scaled(n, kind.scale))
    if pa.types.is_large_string(kind):
        return st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
    if pa.types.is_large_binary(kind):
        return st.binary(max_size=8)
    if pa.types.is_date32(kind):
        return st.integers(-719_162, 2_932_896)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    if pa.types.is_time64(kind):
        return st.integers(0, 86_400 * per_second - 1)
    reach = (9 * 10**9 if kind.unit == "ns" else 6 * 10**10) * per_second
    return st.integers(-reach, reach)


def values(kind: pa.DataType, *, nulls: bool = True) -> st.SearchStrategy[Any]:
    """Special values, random ones and nulls."""
    found = st.one_of(st.sampled_from(specials(kind)), random_values(kind))
    return st.one_of(found, found, found, st.none()) if nulls else found


def arrays(kind: pa.DataType, *, size: int | None = None, nulls: bool = True) -> st.SearchStrategy[pa.Array]:
    """Columns of up to 40 values, or of exactly `size`."""
    low, high = (0, 40) if size is None else (size, size)
    found = st.lists(values(kind, nulls=nulls), min_size=low, max_size=high)
    return found.map(lambda chosen: array(chosen, kind))
