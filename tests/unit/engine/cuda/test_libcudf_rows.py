"""Rows that scans leave to libcudf, over a stand-in for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.device import Device


@pytest.fixture
def rows(device: Device[Any]) -> Any:
    from bamquery.engine.cuda.scan.columns import libcudf_rows

    return libcudf_rows


def words(*places: int) -> Any:
    """Memory of somebody else's, which the test keeps."""
    array = np.array(places, np.int32)
    return SimpleNamespace(ptr=array.ctypes.data, array=array)


def test_values_of_dictionaries(device: Any, rows: Any) -> None:
    session = device.session
    first = rows.upload_values(session, pa.array(["blue", "red"], pa.large_string()))
    second = rows.upload_values(session, pa.array(["green"], pa.large_string()))
    assert rows.concatenate(session, [first]) is first
    both = rows.concatenate(session, [first, second])
    places = words(2, 0, 3, 1, 3)
    found = rows.look_up(session, both, places, 5)
    assert found.values() == [b"green", b"blue", None, b"red", None]


def test_rows_at_places(device: Any, rows: Any) -> None:
    column = rows.upload_values(device.session, pa.array([5, None, 7, 8]))
    places = words(3, 1, 0)
    assert rows.take_rows(device.session, column, places.ptr, 3).values() == [8, None, 5]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.timestamp("us"), pa.decimal128(21, 2)])
def test_nothing_but_nulls(device: Any, rows: Any, kind: pa.DataType) -> None:
    assert rows.null_column(device.session, kind, 3).values() == [None] * 3
