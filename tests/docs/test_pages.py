"""Tables of pages that speak of code: nothing is missing from them, and nothing in them is not so."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields

from bamquery import errors
from bamquery.engine.settings import Settings
from tests.docs.blocks import REPOSITORY

DOCS = REPOSITORY / "docs"


def table_rows(page: str) -> list[list[str]]:
    """Cells of all rows of all tables, heads and rules left out."""
    rows = []
    for line in (DOCS / page).read_text("utf-8").splitlines():
        if line.startswith("| `"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def test_every_error_is_there_below_its_root() -> None:
    known = {
        name: cls.__mro__[1].__name__
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and issubclass(cls, errors.BamQueryError)
    }
    said = {row[0].strip("`"): row[1].strip("`") for row in table_rows("errors.md")}
    assert said == known


def test_every_setting_is_there_with_its_default() -> None:
    said = {row[0].strip("`"): row[1] for row in table_rows("settings.md")}
    assert said.keys() == {field.name for field in fields(Settings)}
    for field in fields(Settings):
        shown = said[field.name]
        if field.default is None:
            continue  # what it stands for depends on the machine: said in words
        expected = {True: "on", False: "off"}.get(field.default, str(field.default))  # type: ignore[call-overload]
        assert shown.strip("`") == expected, field.name
