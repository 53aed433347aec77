"""Columns that one query's scans share."""

from __future__ import annotations

import importlib
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from bamquery.engine.device import Device


@pytest.fixture
def module(device: Device[Any]) -> Any:
    """The module, which knows the stand-in for libcudf."""
    return importlib.import_module("bamquery.engine.cuda.cache.query_columns")


def column(nbytes: int) -> Any:
    return SimpleNamespace(nbytes=nbytes)


def test_what_a_query_has_read_goes_with_it(module: Any) -> None:
    columns, key, one = module.ColumnsOfQueries(), (("a", 0),), column(10)
    context, other = SimpleNamespace(at_end=ExitStack()), SimpleNamespace(at_end=ExitStack())
    columns.columns(context).keep(key, one, 100)
    assert columns.columns(context).find(key) is one
    assert columns.columns(other).find(key) is None
    context.at_end.close()
    assert columns.columns(context).find(key) is None
    assert columns.clear() == 0


def test_it_takes_no_more_than_it_may(module: Any) -> None:
    held = module.QueryColumns()
    for number in range(4):
        held.keep((("a", number),), column(30), 100)
    assert [held.find((("a", number),)) is not None for number in range(4)] == [True, True, True, False]


def test_memory_that_others_need_is_taken(module: Any) -> None:
    columns, key = module.ColumnsOfQueries(), (("a", 0),)
    context = SimpleNamespace(at_end=ExitStack())
    columns.columns(context).keep(key, column(10), 100)
    assert columns.clear() == 10
    assert columns.columns(context).find(key) is None
    context.at_end.close()
