"""Frames of the cuda device, over a stand-in for libcudf, against the CPU device."""

from __future__ import annotations

from typing import Any

import pytest

from bamquery.engine.device import Device
from tests.devices import frames as device_frames
from tests.selection.effort import spread
from tests.strategies import ALL_TYPES

SIZES = (0, 1, 33, 70)


def test_copies(device: Device[Any]) -> None:
    device_frames.check_copies(device, SIZES)


def test_filters(device: Device[Any]) -> None:
    device_frames.check_filters(device, SIZES)


def test_sorting(device: Device[Any]) -> None:
    device_frames.check_sorting(device)


@pytest.mark.long
def test_groups(device: Device[Any]) -> None:
    device_frames.check_groups(device, 60, spread(ALL_TYPES, 5))


@pytest.mark.long
def test_reduced_groups(device: Device[Any]) -> None:
    device_frames.check_reduced_groups(device, 60, spread(ALL_TYPES, 7))


@pytest.mark.long
def test_gathered(device: Device[Any]) -> None:
    device_frames.check_gathered(device, 60, spread(ALL_TYPES, 6))
