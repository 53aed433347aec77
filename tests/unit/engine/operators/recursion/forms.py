"""Which form computes the steps of recursive queries, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import bamquery

ROWS, COLUMNS = (f"bamquery.engine.operators.recursion.by_{form}.recursion" for form in ("row", "column"))


def without_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on all steps are operators'."""
    monkeypatch.setattr(f"{ROWS}.MOST_ROWS", 0)
    monkeypatch.setattr(f"{COLUMNS}.MOST_ROWS", 0)


@contextmanager
def only_operators() -> Iterator[None]:
    """All steps are operators'."""
    with pytest.MonkeyPatch.context() as patch:
        without_small_steps(patch)
        yield


@contextmanager
def only_columns() -> Iterator[None]:
    """No step is computed row by row, however few rows it has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{ROWS}.MOST_ROWS", 0)
        yield


def recursion_details(rows: bamquery.Relation) -> dict[str, Any]:
    """What the profile says of the one recursive query."""
    (part,) = [part for part in rows.profile.root.walk() if part.name == "Recursion"]
    return part.details
