"""The devices that every conformance test runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from bamquery.engine.device import Device
from bamquery.engine.devices import open_device
from tests.oracle import connect

DEVICES = ["cpu"]


@pytest.fixture(scope="session", params=DEVICES)
def device(request: pytest.FixtureRequest) -> Device[Any]:
    """A device; a test that takes it runs on each."""
    found, _ = open_device(request.param)
    return found


@pytest.fixture(scope="session")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB, the dialect's reference."""
    with connect() as connection:
        yield connection
