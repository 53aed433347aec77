"""Decimals in 64 bits: as those in 128, or not at all."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.casts.cast import cast
from bamquery.engine.cpu.numeric import decimals, small_decimals


def _column(values: list[str | None], precision: int, scale: int) -> pa.Array:
    return pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(precision, scale))


CASES = [
    _column(["1.50", "-2.25", None, "0.00"], 15, 2),
    _column(["9999999999999999.99", "-0.01", "0.01", None], 18, 2),
    _column(["92233720368547758.07", "-92233720368547758.08", "1.00", "2.00"], 38, 2),
    _column(["99999999999999999999999999999999999999", "1", "-1", None], 38, 0),
    _column([None, None, None, None], 5, 1),
    _column(["0.1", "123456789012345678.9", "-5.0", "7.0"], 30, 1),
    _column(["7.5", "1.0", None, "2.0"], 9, 3),
]


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
@pytest.mark.parametrize("left", CASES)
@pytest.mark.parametrize("right", CASES)
def test_as_in_python(name: str, left: pa.Array, right: pa.Array) -> None:
    scale = (
        left.type.scale + right.type.scale if name == "multiply" else max(left.type.scale, right.type.scale)
    )
    kind = pa.decimal128(38, scale)
    found = small_decimals.arithmetic(name, [left, right], kind)
    if found is None:
        return
    with decimals.decimal.localcontext(decimals.EXACT):
        operation = {"add": Decimal.__add__, "subtract": Decimal.__sub__, "multiply": Decimal.__mul__}[name]
        wanted = [
            None if a is None or b is None else operation(a, b)
            for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)
        ]
    assert found.type == kind
    assert found.to_pylist() == wanted


def test_small_ones_are_computed_and_others_are_not() -> None:
    price, share, large, huge = CASES[0], CASES[1], CASES[2], CASES[3]
    assert small_decimals.arithmetic("multiply", [price, price], pa.decimal128(30, 4)) is not None
    assert small_decimals.arithmetic("multiply", [share, share], pa.decimal128(36, 4)) is None
    assert small_decimals.small_values(large) is None  # the least number of 64 bits has no absolute value
    assert small_decimals.small_values(huge) is None
    # What would not fit the type is left to those who know what to say.
    assert small_decimals.arithmetic("add", [price, price], pa.decimal128(3, 2)) is not None
    assert small_decimals.arithmetic("add", [price, price], pa.decimal128(2, 2)) is None


def test_a_null_may_hide_anything() -> None:
    words = np.array([[150, 0], [-1, 7]], np.int64)
    validity = pa.py_buffer(bytes([0b01]))
    column = pa.Array.from_buffers(pa.decimal128(15, 2), 2, [validity, pa.py_buffer(words.tobytes())])
    assert small_decimals.small_values(column) is None
    assert decimals.add([column, column], pa.decimal128(16, 2)).to_pylist() == [Decimal("3.00"), None]


def test_casts_keep_slices_and_nulls() -> None:
    whole = _column(["1.50", None, "-2.25", "3.00"], 15, 2)
    for kind in (pa.decimal128(17, 2), pa.decimal128(20, 4), pa.decimal128(38, 37)):
        assert cast(whole.slice(1, 2), kind, try_=False).to_pylist() == [None, Decimal("-2.25")]
    numbers = pa.array([5, None, -7], pa.int32()).slice(1)
    assert cast(numbers, pa.decimal128(12, 2), try_=False).to_pylist() == [None, Decimal("-7.00")]
