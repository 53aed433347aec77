"""Keys order as values do, and packed predicates say what conditions say."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from bamquery.storage.statistics.predicate import RangePredicate

ORDERED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, -1, 0, 1, 127]),
    (pa.int16(), [-(2**15), -1, 0, 2**15 - 1]),
    (pa.int32(), [-(2**31), -1, 0, 2**31 - 1]),
    (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    (pa.uint8(), [0, 1, 255]),
    (pa.uint32(), [0, 1, 2**32 - 1]),
    (pa.uint64(), [0, 1, 2**64 - 1]),
    (pa.float32(), [-math.inf, -1.5, -1e-40, 0.0, 1e-40, 2.5, math.inf, math.nan]),
    (pa.float64(), [-math.inf, -1.5, -5e-324, 0.0, 5e-324, 2.5, math.inf, math.nan]),
    (pa.date32(), [datetime.date(1900, 1, 1), datetime.date(1970, 1, 1), datetime.date(2100, 1, 1)]),
    (pa.timestamp("us"), [datetime.datetime(1900, 1, 1), datetime.datetime(2000, 1, 1)]),
    (pa.time64("us"), [datetime.time(0), datetime.time(23, 59, 59)]),
    (pa.bool_(), [False, True]),
    (pa.decimal128(38, 0), [Decimal(-(10**38) + 1), Decimal(-(2**64)), Decimal(0), Decimal(10**38 - 1)]),
    (
        pa.decimal128(38, 30),
        [Decimal(-1), Decimal("-1E-30"), Decimal("0E-30"), Decimal("1E-30"), Decimal("99999999.9")],
    ),
]


@pytest.fixture
def predicate(scan_modules: None) -> Any:
    from bamquery.engine.cuda.scan.kernel_tables import predicates as predicate

    return predicate


@pytest.mark.parametrize(("kind", "values"), ORDERED, ids=lambda value: str(value)[:12])
def test_keys_order_as_values_do(predicate: Any, kind: pa.DataType, values: list[Any]) -> None:
    keys = [predicate.order_key(pa.scalar(value, kind)) for value in values]
    assert keys == sorted(set(keys))
    assert 0 <= keys[0] <= keys[-1] < 1 << predicate.key_bits(kind)


def test_zeros_are_equal(predicate: Any) -> None:
    for kind in (pa.float32(), pa.float64()):
        assert predicate.order_key(pa.scalar(-0.0, kind)) == predicate.order_key(pa.scalar(0.0, kind))


def ranges(*conditions: tuple[Any, ...]) -> list[RangePredicate]:
    return [
        RangePredicate("c", operator, tuple(pa.scalar(value, pa.int32()) for value in values))
        for operator, *values in conditions
    ]


def passes(fused: Any, value: int | None) -> bool:
    """What the kernel does."""
    if value is None:
        return bool(fused.wants_nulls) and not fused.terms
    key = (value & 0xFFFFFFFF) ^ (1 << 31)
    within = [any(low <= key <= high for low, high in term.intervals) != term.negated for term in fused.terms]
    return not fused.wants_nulls and all(within)


CASES: list[tuple[list[RangePredicate], list[int | None]]] = [
    (ranges(("=", 3)), [3]),
    (ranges(("!=", 3), ("!=", 5)), [-7, 0, 4]),
    (ranges(("<", 3)), [-7, 0]),
    (ranges((">=", 3), ("<", 5)), [3, 4]),
    (ranges((">", 3), ("<", 3)), []),
    (ranges(("<", -(2**31))), []),
    (ranges((">", 2**31 - 1)), []),
    (ranges(("in", 3, 5, 5, 99)), [3, 5]),
    (ranges(("in", 3, 5), (">", 3)), [5]),
    (ranges(("in",)), []),
    (ranges(("=", None)), []),
    (ranges(("is_null",)), [None]),
    (ranges(("is_not_null",)), [-7, 0, 3, 4, 5]),
    (ranges(("is_null",), ("=", 3)), []),
]


@pytest.mark.parametrize(("conditions", "expected"), CASES)
def test_conditions(predicate: Any, conditions: list[RangePredicate], expected: list[int | None]) -> None:
    fused = predicate.fuse_ranges(conditions, pa.int32(), "int32_t")
    values: list[int | None] = [-7, 0, 3, 4, 5, None]
    assert [value for value in values if passes(fused, value)] == expected


def test_packed(predicate: Any) -> None:
    fused = predicate.fuse_ranges(ranges(("in", 3, 5), ("!=", 5)), pa.int32(), "int32_t")
    packed = fused.pack()
    assert len(packed) == 8 + 8 * predicate.TERMS + 16 * predicate.INTERVALS
    assert struct.unpack_from("<II", packed) == (2, 0)
    assert struct.unpack_from("<HHIHHI", packed, 8) == (0, 2, 0, 2, 1, 1)
    three = 3 ^ (1 << 31)
    assert struct.unpack_from("<QQ", packed, 8 + 8 * predicate.TERMS) == (three, three)


def test_too_many_values_do_not_fit(predicate: Any) -> None:
    found = predicate.fuse_ranges(ranges(("in", *range(30))), pa.int32(), "int32_t")
    assert isinstance(found, str)
    assert "30 values" in found


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.large_string())])
def test_types_that_kernels_do_not_compare(predicate: Any, kind: pa.DataType) -> None:
    assert predicate.value_c_type(kind) is None


def test_decimals_are_their_digits(predicate: Any) -> None:
    """Precise beyond what decimal arithmetic keeps by default."""
    for digits in (10**38 - 1, 10**37 + 1, -(10**38) + 1, 0, 7):
        for scale in (0, 2, 38):
            value = pa.scalar(digits, pa.decimal128(38, 0)).as_py().scaleb(-scale, Context(prec=60))
            key = predicate.order_key(pa.scalar(value, pa.decimal128(38, scale)))
            assert key == digits + (1 << 127)


def test_wide_predicates_have_wide_intervals(predicate: Any) -> None:
    value = pa.scalar(Decimal("-3.25"), pa.decimal128(20, 2))
    fused = predicate.fuse_ranges([RangePredicate("c", "<=", (value,))], value.type, "ScanDecimal")
    packed = fused.pack()
    assert len(packed) == 8 + 8 * predicate.TERMS + 32 * predicate.INTERVALS
    at = 8 + 8 * predicate.TERMS
    assert int.from_bytes(packed[at : at + 16], "little") == 0
    assert int.from_bytes(packed[at + 16 : at + 32], "little") == (1 << 127) - 325


def test_values_and_nulls_together_are_not_for_kernels(predicate: Any) -> None:
    found = predicate.fuse_ranges(
        [RangePredicate("c", "<", (pa.scalar(7),), or_null=True)], pa.int64(), "int64_t"
    )
    assert isinstance(found, str)
