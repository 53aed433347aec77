"""Plain constants against pyarrow's own."""

import datetime
import decimal
import math

import numpy as np
import pyarrow as pa
import pytest

from bamquery.plan.literals.scalars import scalar

PLAIN = [
    *((value, kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()) for value in (0, 1, -1, 127)),
    *((value, kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()) for value in (0, 255)),
    *((value, pa.int64()) for value in (2**63 - 1, -(2**63))),
    (2**64 - 1, pa.uint64()),
    *((value, pa.bool_()) for value in (True, False)),
    *((value, pa.float64()) for value in (0.0, -0.0, 1.5, float("inf"), 5e-324)),
    *((value, pa.large_string()) for value in ("", "x", "ä€𝄞", "a\0b", "x" * 10_000)),
    (1_700_000_000_000_000, pa.timestamp("us", "UTC")),
    *((None, kind) for kind in (pa.null(), pa.int32(), pa.large_string(), pa.decimal128(9, 2), pa.date32())),
    *(
        (decimal.Decimal(text), kind)
        for text in ("1.25", "-0.01", "0", "1E+3", "1.2500", "0.001", "123456789.12", "NaN")
        for kind in (pa.decimal128(9, 2), pa.decimal128(38, 0), pa.decimal128(38, 38))
    ),
    *((value, pa.decimal128(38, 0)) for value in (0, -1, 10**38 - 1, -(10**38) + 1, 10**38)),
    *((np.float64(value), pa.float64()) for value in (0.1, -0.0, 1e308)),
    *((np.float32(value), pa.float32()) for value in (0.1, -0.0, 3e38)),
    (np.float64(0.1), pa.float32()),
    (0.1, pa.float32()),
    (datetime.date(2024, 2, 29), pa.date32()),
    (True, pa.int32()),
    (1, pa.float64()),
    (b"x", pa.large_binary()),
]


@pytest.mark.parametrize(("value", "kind"), PLAIN)
def test_is_what_pyarrow_makes(value: object, kind: pa.DataType) -> None:
    expected = outcome(pa.scalar, value, kind)
    found = outcome(scalar, value, kind)
    assert found == expected
    if isinstance(found, pa.Scalar):
        assert found.type == kind
        assert found.is_valid == (value is not None)
        assert hash(found) == hash(expected)
        assert str(found.as_py()) == str(expected.as_py())  # the sign of zero, too


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2**31, pa.int32()),
        (-1, pa.uint8()),
        (2**64, pa.int64()),
        ("x", pa.int32()),
        ("\ud800", pa.large_string()),
    ],
)
def test_refuses_what_pyarrow_refuses(value: object, kind: pa.DataType) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 (whatever it is)
        pa.scalar(value, kind)
    with pytest.raises(theirs.type):
        scalar(value, kind)


def test_nan() -> None:
    assert math.isnan(scalar(float("nan"), pa.float64()).as_py())


def outcome(make, value: object, kind: pa.DataType):
    try:
        return make(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        return type(error)
