"""docs/python/duckdb-api.md against DuckDB's classes, of which it has every name, and against ours."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import bamquery

PAGE = Path(__file__).resolve().parents[4] / "docs" / "python" / "duckdb-api.md"
CLASSES = {
    "DuckDBPyRelation": (duckdb.DuckDBPyRelation, bamquery.Relation),
    "DuckDBPyConnection": (duckdb.DuckDBPyConnection, bamquery.Connection),
}


def said(name: str) -> list[tuple[str, str, str]]:
    """Each line of the class's table: the method, what there is here, and the words."""
    section = PAGE.read_text().partition(f"## {name}")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \| ([a-z ]+) \| (.*) \|$", section, re.MULTILINE)


@pytest.mark.parametrize("name", CLASSES)
def test_the_page_has_every_method_once(name: str) -> None:
    theirs, _ = CLASSES[name]
    listed = [method for method, _, _ in said(name)]
    assert listed == [method for method in dir(theirs) if not method.startswith("_")]


@pytest.mark.parametrize("name", CLASSES)
def test_what_the_page_says_is_there_is_there(name: str) -> None:
    _, ours = CLASSES[name]
    for method, status, words in said(name):
        assert status in ("the same", "alias", "not"), method
        assert hasattr(ours, method) == (status != "not"), method
        assert words or status == "the same", method


def test_functions_of_the_module_that_the_page_names() -> None:
    listed = PAGE.read_text().partition("## The module")[2].partition("\n## ")[0]
    for name in re.findall(r"`(?:duckdb\.)?(\w+)`", listed.partition(" are functions of")[0]):
        assert name in bamquery.__all__
        assert hasattr(duckdb, name)
