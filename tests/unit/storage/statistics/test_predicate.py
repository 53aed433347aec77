"""A predicate has as many values as its operator takes."""

import pyarrow as pa
import pytest

from bamquery.storage.statistics.predicate import RangePredicate

ONE = pa.scalar(1)


@pytest.mark.parametrize(
    ("operator", "values"),
    [("=", (ONE,)), ("<", (ONE,)), ("in", ()), ("in", (ONE, ONE)), ("is_null", ()), ("is_not_null", ())],
)
def test_fitting(operator, values) -> None:
    assert RangePredicate("x", operator, values).values == values


@pytest.mark.parametrize(
    ("operator", "values"), [("=", ()), (">=", (ONE, ONE)), ("is_null", (ONE,)), ("is_not_null", (ONE,))]
)
def test_not_fitting(operator, values) -> None:
    with pytest.raises(AssertionError):
        RangePredicate("x", operator, values)
