"""Texts as numbers: what Python's own readers take, DuckDB's do not."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from bamquery.data_types.type_groups import HUGEINT
from bamquery.plan.literals.number_strings import (
    exact_number,
    integral_number,
    number_reader,
    parse_float,
    unsigned_number,
)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "0x" + "f" * 100,
            "0b" + "1" * 400,
            "0x" + "f" * 10**5,
            "1e" + "9" * 5000,
            "1e-" + "9" * 5000,
            "9" * 10**4,
        ),
        *(
            "1e32768",
            "1e-32769",
            "0e99999",
            "1e_1",
            "1e1_",
            "1__0",
            "_1",
            "1_",
            "1_.5",
            "1._5",
            "-0x1",
            "0x1 ",
            "0x_1",
        ),
    ],
)
def test_no_number_of_any_type(text: str) -> None:
    assert integral_number(text) is None
    assert exact_number(text) is None
    assert unsigned_number(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("0x" + "0" * 100 + "ff", 255), ("0xFF_FF", 65535), ("0b1_0", 2), (" 0X1f", 31), ("\t0B11", 3)),
        *(("1e-32768", 0), ("1e0_1", 10), ("1_0.5_0", Decimal("10.5")), (" +1 ", 1), ("-00", 0)),
    ],
)
def test_numbers(text: str, number: Decimal) -> None:
    assert integral_number(text) == number


def test_floats() -> None:
    assert parse_float("1_2e1_0") == 12e10
    assert parse_float("+-1") == -1
    assert parse_float("-+1") is None
    assert parse_float("1e99999") == float("inf")


def test_readers_of_types() -> None:
    assert number_reader(pa.uint8())("-1") is None
    assert number_reader(pa.int8())("0xF") == number_reader(HUGEINT)("0xF") == 15
    assert number_reader(pa.decimal128(18, 3))("0xF") is None
