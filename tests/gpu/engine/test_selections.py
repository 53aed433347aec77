"""Rows that conditions select on a GPU."""

from __future__ import annotations

from typing import Any

from bamquery.engine.device import Device
from tests.devices import selections


def test_sets(device: Device[Any]) -> None:
    selections.check_sets(device)


def test_far_values(device: Device[Any]) -> None:
    selections.check_far_values(device)


def test_lost_values(device: Device[Any]) -> None:
    selections.check_lost_values(device)
