"""Whether two answers are the same, as exactly as systems can agree."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from bamquery.queries.speed.comparing import CLOSE, EXACT, ROUNDED, Comparison, difference


def test_exactly() -> None:
    table = pa.table({"a": [1, None], "b": [0.1 + 0.2, float("nan")], "c": [Decimal("1.50"), Decimal(2)]})
    other = pa.table({"A": [1, None], "b": [0.3, float("nan")], "c": [Decimal("1.5"), Decimal("2.0")]})
    assert difference(table, other) == ""
    assert difference(table.slice(1), other) == "1 rows, not 2"
    assert difference(table.select(["a"]), other.select(["b"])) == "columns ['a'], not ['b']"
    assert difference(pa.table({"a": [1, 2]}), other.select(["A"])) == "row 2, A: 2, not None"


@pytest.mark.parametrize(
    ("value", "wanted", "how", "same"),
    [
        (Decimal("1.000000001"), Decimal(1), EXACT, False),
        (Decimal("1.0000000001"), 1.0, CLOSE, True),
        (Decimal("1.00001"), Decimal(1), CLOSE, False),
        (0.03, 0.0286, ROUNDED, True),
        (1_000_000.5, 1_000_000.0, ROUNDED, True),
        (1_000_002.0, 1_000_000.0, ROUNDED, False),
        (None, 0.0, ROUNDED, False),
        ("1", 1, ROUNDED, False),
    ],
)
def test_numbers(value: object, wanted: object, how: Comparison, same: bool) -> None:
    found = difference(pa.table({"a": [value]}), pa.table({"a": [wanted]}), how)
    assert (found == "") is same


def test_names_and_order() -> None:
    one = pa.table({"a": ["x", "y", None], "b": [1.0, 2.0, 3.0]})
    other = pa.table({"c": [None, "y", "x"], "d": [3.0, 2.0, 1.0]})
    assert difference(one, other, ROUNDED) == ""
    assert difference(one, other, CLOSE) == "row 1, c: 'x', not None"
    wrong = pa.table({"c": [None, "y", "x"], "d": [3.0, 2.0, 9.0]})
    assert difference(one, wrong, ROUNDED) == "row 1, c: 'x', not None"
    assert difference(one.select(["a"]), other, ROUNDED) == "1 columns, not 2"


def test_the_looser_of_two() -> None:
    assert EXACT.looser(ROUNDED) == ROUNDED
    assert ROUNDED.looser(CLOSE) == ROUNDED
    assert EXACT.looser(EXACT) == EXACT
