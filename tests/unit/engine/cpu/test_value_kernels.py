"""Kernels made of functions of single values, and of kernels that want constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.value_kernels import per_value, with_constants
from bamquery.errors import ExecutionError

TEXT = pa.large_string()


def column(*values: Any, kind: pa.DataType = TEXT) -> pa.Array:
    return pa.array(values, kind)


def test_each_distinct_value_is_computed_once() -> None:
    seen: list[str] = []

    def function(text: str) -> str:
        seen.append(text)
        return text * 2

    found = per_value(function)([column("a", None, "b", "a")], TEXT)
    assert found.to_pylist() == ["aa", None, "bb", "aa"]
    assert seen == ["a", "b"]


def test_several_columns_and_constants() -> None:
    join = per_value(lambda a, b, c: a + b + c)
    given = [column("a", None, "c"), pa.scalar("-", TEXT), column("x", "y", None)]
    assert join(given, TEXT).to_pylist() == ["a-x", None, None]
    assert join([*given[:2], pa.scalar(None, TEXT)], TEXT).to_pylist() == [None] * 3


def test_faults_of_values_are_errors() -> None:
    def function(text: str) -> str:
        raise ValueError(f"{text} is bad")

    with pytest.raises(ExecutionError, match="a is bad"):
        per_value(function)([column("a")], TEXT)


def test_many_constants_are_taken_one_by_one() -> None:
    def kernel(arguments: Sequence[Any], kind: pa.DataType) -> pa.Array:
        raise AssertionError("too many for a kernel")

    apply = with_constants([1], kernel, lambda a, b: a + b)
    numbers = [str(i) for i in range(300)]
    found = apply([column(*numbers), column(*numbers[:-1], None)], TEXT)
    assert found.to_pylist() == [*(number * 2 for number in numbers[:-1]), None]


def test_constants_that_are_columns() -> None:
    calls: list[tuple[Any, ...]] = []

    def kernel(arguments: Sequence[Any], kind: pa.DataType) -> pa.Array:
        values, first, second = arguments
        calls.append((first.as_py(), second.as_py()))
        return column(*(f"{value}{first}{second}" for value in values))

    apply = with_constants([1, 2], kernel)
    values = column("a", "b", "c", "d", "e")
    first, second = column("x", "y", "x", None, "x"), column("1", "1", "1", "1", "2")
    assert apply([values, first, second], TEXT).to_pylist() == ["ax1", "by1", "cx1", None, "ex2"]
    assert sorted(calls) == [("x", "1"), ("x", "2"), ("y", "1")]
    one = apply([values, pa.scalar("x", TEXT), pa.scalar("1", TEXT)], TEXT)
    assert one.to_pylist() == ["ax1", "bx1", "cx1", "dx1", "ex1"]
    none = apply([values, pa.scalar(None, TEXT), second], TEXT)
    assert none.to_pylist() == [None] * 5
    only_nulls = column(None, None, None, None, None)
    assert apply([values, only_nulls, second], TEXT).to_pylist() == [None] * 5
