"""Frames on a GPU against the CPU device: every type, with nulls, special values, slices and no rows."""

from __future__ import annotations

from typing import Any

from bamquery.engine.device import Device
from tests.devices import frames as device_frames


def test_copies(device: Device[Any]) -> None:
    device_frames.check_copies(device)


def test_filters(device: Device[Any]) -> None:
    device_frames.check_filters(device)


def test_sorting(device: Device[Any]) -> None:
    device_frames.check_sorting(device)


def test_groups(device: Device[Any]) -> None:
    device_frames.check_groups(device)


def test_reduced_groups(device: Device[Any]) -> None:
    device_frames.check_reduced_groups(device)


def test_gathered(device: Device[Any]) -> None:
    device_frames.check_gathered(device)
