"""Calls over windows, over a stand-in for libcudf."""

from __future__ import annotations

from typing import Any

import pytest

from bamquery.engine.device import Device
from tests import device_windows
from tests.strategies import ALL_TYPES


def test_functions(device: Device[Any]) -> None:
    device_windows.check_functions(device, (1, 2, 23))


def test_frames(device: Device[Any]) -> None:
    device_windows.check_frames(device, 24)


def test_types(device: Device[Any]) -> None:
    device_windows.check_types(device, 12, ALL_TYPES[::3])


def test_errors(device: Device[Any]) -> None:
    device_windows.check_errors(device)


def test_parts_of_a_partition(device: Device[Any]) -> None:
    device_windows.check_parts_of_a_partition(device, 30, (0, 1, 9, 20))


def test_many_rows_go_in_steps(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.engine.cuda.windows import framed_aggregates

    monkeypatch.setattr(framed_aggregates, "_FRAMES", 5)
    monkeypatch.setattr(framed_aggregates, "_ROWS", 7)
    device_windows.check_functions(device, (23,))
