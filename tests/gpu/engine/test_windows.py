"""Calls over windows on a GPU against the CPU device."""

from __future__ import annotations

from typing import Any

import pytest

from bamquery.engine.device import Device
from tests.devices import vectors as device_vectors
from tests.devices import windows as device_windows


def test_vectors(device: Device[Any]) -> None:
    device_vectors.check_vectors(device)


def test_functions(device: Device[Any]) -> None:
    device_windows.check_functions(device)


def test_frames(device: Device[Any]) -> None:
    device_windows.check_frames(device)


def test_types(device: Device[Any]) -> None:
    device_windows.check_types(device)


def test_texts_in_portions(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    device_windows.check_texts_in_portions(device, monkeypatch)


def test_errors(device: Device[Any]) -> None:
    device_windows.check_errors(device)


def test_parts_of_a_partition(device: Device[Any]) -> None:
    device_windows.check_parts_of_a_partition(device)
    device_windows.check_parts_of_a_partition(device, 900, (0, 300, 600))
