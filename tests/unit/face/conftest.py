"""What the tests of the face share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import bamquery
from tests.stored import numbers, store

ROWS = 30_000
CUTS = (1, 5000, 5001, 20_000)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with table `numbers` in five fragments; not to be changed."""
    path = tmp_path_factory.mktemp("face") / "db"
    with bamquery.connect(path) as connection:
        store(connection._session.database, "numbers", numbers(ROWS), CUTS)
    return path


@pytest.fixture
def con() -> Iterator[bamquery.Connection]:
    """A connection to a database of its own."""
    with bamquery.connect() as connection:
        yield connection
