"""Values at the ends of every type: as an expression of SQL, and as a scalar of Arrow.

    for value in extremes("TINYINT"):
        value.sql, value.scalar, value.kind     # CAST('-128' AS TINYINT), <pyarrow.Int8Scalar>, "smallest"

`drawn(choose, name)` draws one more, at random between them; `column(name, values)` makes an Arrow array.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.data_types.type_groups import HUGEINT, INTERVAL
from bamquery.plan.literals import interval_strings
from tests.sql.randomized.casts import strings as texts

TYPES: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INTEGER": pa.int32(),
        "BIGINT": pa.int64(),
        "UTINYINT": pa.uint8(),
        "USMALLINT": pa.uint16(),
        "UINTEGER": pa.uint32(),
        "UBIGINT": pa.uint64(),
        "HUGEINT": HUGEINT,
        "DECIMAL(4,1)": pa.decimal128(4, 1),
        "DECIMAL(9,0)": pa.decimal128(9, 0),
        "DECIMAL(18,3)": pa.decimal128(18, 3),
        "DECIMAL(38,10)": pa.decimal128(38, 10),
        "DECIMAL(38,37)": pa.decimal128(38, 37),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "VARCHAR": pa.large_string(),
        "BLOB": pa.large_binary(),
        "DATE": pa.date32(),
        "TIME": pa.time64("us"),
        "TIME_NS": pa.time64("ns"),
        "TIMESTAMP": pa.timestamp("us"),
        "TIMESTAMP_S": pa.timestamp("s"),
        "TIMESTAMP_MS": pa.timestamp("ms"),
        "TIMESTAMP_NS": pa.timestamp("ns"),
        "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
        "INTERVAL": INTERVAL,
    }
)
"""Every type that a column has, with some of the decimals, in DuckDB's spelling."""

_DAY: Final = 86_400
_EPOCH: Final = date(1970, 1, 1)
_PER_SECOND: Final[Mapping[str, int]] = MappingProxyType({"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9})

FIRST_DAY: Final = -(2**31) + 2
LAST_DAY: Final = 2**31 - 2
"""Of a DATE, in days from 1970; beyond them are DuckDB's infinities, which BamQuery does not have."""

FIRST_SECOND: Final = -9_223_372_022_400
"""290309-12-22 (BC), the first second of a TIMESTAMP; the last microsecond is 2**63 - 2."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a type.

    Attributes:
        type: the type's name, a key of `TYPES`.
        sql: a constant expression of that type, the same in BamQuery and DuckDB.
        scalar: the value in Arrow, of type `TYPES[type]`.
        kind: what is special about it, in a few words; "another" if nothing is.
    """

    type: str
    sql: str
    scalar: pa.Scalar[Any]
    kind: str

    @property
    def is_null(self) -> bool:
        return not self.scalar.is_valid


def column(name: str, values: Sequence[Value]) -> pa.Array[Any]:
    """The values of one type as an Arrow array."""
    return pa.concat_arrays([pa.array([value.scalar], TYPES[name]) for value in values])


@cache
def extremes(name: str) -> tuple[Value, ...]:
    """NULL and the values at the ends of a type, and next to them."""
    kind = TYPES[name]
    null = Value(name, f"CAST(NULL AS {name})", pa.scalar(None, kind), "NULL")
    return (null, *(_value(name, plain, said) for plain, said in _extremes_of(kind)))


def draw_value(choose: random.Random, name: str) -> Value:
    """A value of the type at random: of any size, near a power of ten or two, near a day's or year's end."""
    return _value(name, _random_plain(choose, TYPES[name]), "another")


def _value(name: str, plain: Any, said: str) -> Value:
    """From integers of any size, of days and of stored units, floats, Decimals, texts, bytes or parts."""
    kind = TYPES[name]
    return Value(name, _sql(name, plain), _scalar(plain, kind), said)


def _scalar(plain: Any, kind: pa.DataType) -> pa.Scalar[Any]:
    if pa.types.is_date32(kind):
        return pa.array([plain], pa.int32()).view(kind)[0]
    if pa.types.is_temporal(kind) and kind != INTERVAL:
        return pa.array([plain], pa.int64()).view(kind)[0]
    if kind == INTERVAL:
        months, days, micros = plain
        return pa.scalar(pa.MonthDayNano([months, days, micros * 1000]), kind)
    if kind == HUGEINT:
        return pa.scalar(Decimal(plain), kind)
    if pa.types.is_float32(kind):
        return pa.scalar(np.float32(plain), kind)
    return pa.scalar(plain, kind)


def _sql(name: str, plain: Any) -> str:
    kind = TYPES[name]
    if pa.types.is_boolean(kind):
        return "true" if plain else "false"
    return (
        f"CAST({quote_string(string_of_value(plain, kind))} AS {name})"
        if name != "VARCHAR"
        else quote_string(plain)
    )


def quote_string(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def string_of_value(plain: Any, kind: Any) -> str:
    """The text that casts to the value."""
    if pa.types.is_large_binary(kind):
        return "".join(rf"\x{byte:02X}" for byte in plain)
    if kind == INTERVAL:
        return interval_strings.write(*plain)
    if pa.types.is_date32(kind):
        return _date_text(plain)
    if pa.types.is_time(kind):
        return _time_text(plain, kind.unit)
    if pa.types.is_timestamp(kind):
        days, rest = divmod(plain, _DAY * _PER_SECOND[kind.unit])
        day = _date_text(days)
        return f"{day} {_time_text(rest, kind.unit)}{'+00' if kind.tz else ''}"
    if isinstance(plain, Decimal):
        return f"{plain:f}"
    return repr(plain) if isinstance(plain, float) else str(plain)


def _date_text(days: int) -> str:
    # 400 years are always 146,097 days, which moves any day to one that Python has.
    cycles, rest = divmod(days, 146_097)
    near = _EPOCH + timedelta(days=rest)
    year = near.year + 400 * cycles
    said = f"{year:04d}" if year > 0 else f"{1 - year:04d}"
    return f"{said}-{near.month:02d}-{near.day:02d}{'' if year > 0 else ' (BC)'}"


def _time_text(units: int, unit: str) -> str:
    seconds, fraction = divmod(units, _PER_SECOND[unit])
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    digits = len(str(_PER_SECOND[unit])) - 1
    return f"{text}.{fraction:0{digits}d}" if fraction else text


def _extremes_of(kind: Any) -> list[tuple[Any, str]]:
    if pa.types.is_boolean(kind):
        return [(False, "false"), (True, "true")]
    if pa.types.is_integer(kind) or kind == HUGEINT:
        return _integers(*_integer_range(kind))
    if pa.types.is_decimal(kind):
        return [(_scaled(unscaled, kind), said) for unscaled, said in _decimals(kind)]
    if pa.types.is_floating(kind):
        return _floats(single=pa.types.is_float32(kind))
    if pa.types.is_large_string(kind):
        return list(texts.EXTREMES)
    if pa.types.is_large_binary(kind):
        return [(b"", "empty"), (b"\0", "a zero byte"), (b"\xff\xfe", "no UTF-8"), (b"abc'\\", "quotes")]
    if pa.types.is_date32(kind):
        return [*_neighbours(FIRST_DAY, "first", (0, 1)), *_neighbours(LAST_DAY, "last", (-1, 0)), *_DAYS]
    if kind == INTERVAL:
        return list(_INTERVALS)
    per_day = _DAY * _PER_SECOND[kind.unit]
    if pa.types.is_time(kind):
        return [
            (0, "midnight"),
            (1, "one unit"),
            (per_day // 2, "noon"),
            *_neighbours(per_day - 1, "last of the day", (-1, 0)),
        ]
    first, last = _moments(kind)
    moments = [*_neighbours(first, "first", (0, 1)), *_neighbours(last, "last", (-1, 0))]
    inner = [(days * per_day, said) for days, said in _DAYS if first <= days * per_day <= last]
    return [
        *moments,
        *inner,
        (-1, "before 1970"),
        (1, "one unit"),
        (per_day - 1, "last of the day"),
        (per_day // 2 - 1, "before noon"),
        (1_234_567_890 * _PER_SECOND[kind.unit] + 5, "a fraction"),
    ]


_DAYS: Final = (
    (0, "1970"),
    (-1, "before 1970"),
    (-719_162, "year 1"),
    (-719_163, "year 1 BC"),
    (2_932_896, "year 9999"),
    (2_932_897, "year 10000"),
    (11_016, "a leap day"),
    (-25_508, "before March of 1900"),
    (19_722, "last of a year"),
    (24_855, "2038"),
    (106_751, "last of nanoseconds"),
    (-106_751, "first of nanoseconds"),
)

_MOST_MICROS: Final = (2**63 - 1) // 1000
_INTERVALS: Final = (
    ((0, 0, 0), "none"),
    ((1, 0, 0), "a month"),
    ((-1, 0, 0), "a month back"),
    ((0, 1, 0), "a day"),
    ((0, -1, 0), "a day back"),
    ((0, 0, 1), "a microsecond"),
    ((0, 0, -1), "a microsecond back"),
    ((1, -30, 0), "parts that cancel"),
    ((0, 30, 0), "30 days"),
    ((0, 1, -_DAY * 10**6), "parts that cancel"),
    ((12, 365, 3_661_000_001), "all parts"),
    ((-12, -365, -3_661_000_001), "all parts"),
    ((2**31 - 1, 0, 0), "most months"),
    ((-(2**31) + 1, 0, 0), "least months"),
    ((0, 2**31 - 1, 0), "most days"),
    ((0, -(2**31) + 1, 0), "least days"),
    ((0, 0, _MOST_MICROS), "most microseconds"),
    ((0, 0, -_MOST_MICROS), "least microseconds"),
)


def _neighbours(place: int, said: str, steps: Sequence[int]) -> list[tuple[int, str]]:
    return [(place + step, said if not step else f"next to {said}") for step in steps]


def _integer_range(kind: pa.DataType) -> tuple[int, int]:
    if kind == HUGEINT:
        return -(10**38) + 1, 10**38 - 1
    if pa.types.is_signed_integer(kind):
        return -(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1
    return 0, (1 << kind.bit_width) - 1


def _moments(kind: Any) -> tuple[int, int]:
    """First and last moment of a timestamp's type, in its unit."""
    if kind.unit == "ns":
        # DuckDB's first second of nanoseconds is the first that 64 bits hold whole.
        return -(2**63 - 2), 2**63 - 2
    per_second = _PER_SECOND[kind.unit]
    return FIRST_SECOND * per_second, (2**63 - 2) * per_second // 10**6


def _integers(low: int, high: int) -> list[tuple[int, str]]:
    found = {low: "smallest", low + 1: "next to smallest", high - 1: "next to largest", high: "largest"}
    found |= {0: "0", 1: "1", 2: "2", 10: "10"}
    for bits in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64):
        for near in (-1, 0, 1):
            found.setdefault((1 << bits) + near, f"near 2^{bits}")
            found.setdefault(-(1 << bits) + near, f"near -2^{bits}")
    found.setdefault(-1, "-1")
    return [(number, said) for number, said in found.items() if low <= number <= high]


def _decimals(kind: Any) -> list[tuple[int, str]]:
    """Unscaled values: both ends, halves and what is next to them."""
    largest = 10**kind.precision - 1
    found = {-largest: "smallest", largest: "largest", largest - 1: "next to largest", 0: "0", 1: "one unit"}
    found |= {-1: "one unit below 0"}
    for power in range(1, kind.precision):
        found.setdefault(10**power, "a power of ten")
        if power == kind.scale:
            for near in (-1, 0, 1):
                found.setdefault(10**power // 2 + near, "near a half")
                found.setdefault(-(10**power) // 2 + near, "near a half")
                found.setdefault(3 * 10**power // 2 + near, "near a half")
    for bits in (7, 8, 15, 16, 31, 32, 63, 64):
        for near in (-1, 0):
            found.setdefault(((1 << bits) + near) * 10**kind.scale, f"near 2^{bits}")
            found.setdefault(-((1 << bits) + near) * 10**kind.scale, f"near -2^{bits}")
    return [(unscaled, said) for unscaled, said in found.items() if abs(unscaled) <= largest]


def _scaled(unscaled: int, kind: Any) -> Decimal:
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Decimal((sign, digits, -kind.scale))


def _floats(*, single: bool) -> list[tuple[float, str]]:
    largest = 3.4028234663852886e38 if single else 1.7976931348623157e308
    tiny, normal = (2.0**-149, 2.0**-126) if single else (2.0**-1074, 2.0**-1022)
    found = [
        (0.0, "0"), (-0.0, "-0"), (math.nan, "NaN"), (math.inf, "infinity"), (-math.inf, "-infinity"),
        (largest, "largest"), (-largest, "smallest"), (tiny, "subnormal"), (-tiny, "subnormal"),
        (normal, "smallest normal"), (1.0, "1"), (-1.0, "-1"), (0.5, "a half"), (-0.5, "a half"),
        (1.5, "a half"), (2.5, "a half"), (-2.5, "a half"), (0.1, "a tenth"), (1e10, "a power of ten"),
        (1e15, "a power of ten"), (1e16, "a power of ten"), (1e17, "a power of ten"),
        (1e-5, "a power of ten"),
        (1e38, "a power of ten"), (1e37, "a power of ten"), (9999999.5, "a half"),
    ]  # fmt: skip
    for bits in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64, 127):
        for near in (0, -0.5, -1):
            found += [(2.0**bits + near, f"near 2^{bits}"), (-(2.0**bits) + near, f"near -2^{bits}")]
    return [(_single(number) if single else number, said) for number, said in found]


def _single(number: float) -> float:
    return float(np.float32(number))


def _random_plain(choose: random.Random, kind: Any) -> Any:
    if pa.types.is_boolean(kind):
        return choose.random() < 0.5
    if pa.types.is_integer(kind) or kind == HUGEINT:
        return _random_integer(choose, *_integer_range(kind))
    if pa.types.is_decimal(kind):
        largest = 10**kind.precision - 1
        return _scaled(_random_integer(choose, -largest, largest), kind)
    if pa.types.is_floating(kind):
        return _random_float(choose, single=pa.types.is_float32(kind))
    if pa.types.is_large_string(kind):
        return texts.draw_string(choose)
    if pa.types.is_large_binary(kind):
        return choose.randbytes(choose.randrange(6))
    if pa.types.is_date32(kind):
        return _random_integer(choose, FIRST_DAY, LAST_DAY)
    if kind == INTERVAL:
        return (
            _random_integer(choose, -(2**31) + 1, 2**31 - 1) // choose.choice((1, 10**6)),
            _random_integer(choose, -(2**31) + 1, 2**31 - 1) // choose.choice((1, 10**6)),
            _random_integer(choose, -_MOST_MICROS, _MOST_MICROS),
        )
    if pa.types.is_time(kind):
        return _random_integer(choose, 0, _DAY * _PER_SECOND[kind.unit] - 1)
    return _random_integer(choose, *_moments(kind))


def _random_integer(choose: random.Random, low: int, high: int) -> int:
    """Of any number of bits; often near an end, or with zeros at its end."""
    if choose.random() < 0.1:
        return choose.choice((low + choose.randrange(3), high - choose.randrange(3)))
    number = choose.getrandbits(choose.randrange(1, max(high, -low).bit_length() + 1))
    if choose.random() < 0.3:
        number = number // (power := 10 ** choose.randrange(1, 20)) * power
    if low < 0 and choose.random() < 0.5:
        number = -number
    return min(max(number, low), high)


def _random_float(choose: random.Random, *, single: bool) -> float:
    match choose.randrange(4):
        case 0:
            plain = (
                struct.unpack("<f", choose.randbytes(4))[0]
                if single
                else struct.unpack("<d", choose.randbytes(8))[0]
            )
        case 1:
            plain = _random_integer(choose, -(2**70), 2**70) / choose.choice((1, 2, 4, 10, 100, 1000))
        case 2:
            plain = round(choose.uniform(-1000, 1000), choose.randrange(5))
        case _:
            plain = choose.uniform(-1, 1) * 10.0 ** choose.randrange(-40, 39)
    with np.errstate(over="ignore", invalid="ignore"):
        return _single(plain) if single else float(plain)
