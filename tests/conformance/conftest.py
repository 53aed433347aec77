"""The device that every conformance test runs on: the one that `--device` names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from bamquery.engine.device import Device
from bamquery.engine.device_factory import open_device
from tests.oracle import connect


@pytest.fixture(scope="session")
def device(device_name: str) -> Device[Any]:
    """The device."""
    found, _ = open_device(device_name)
    return found


@pytest.fixture(scope="session")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB, the dialect's reference."""
    with connect() as connection:
        yield connection
