"""Joins of the cuda device over the stand-in for libcudf."""

from __future__ import annotations

from typing import Any

from bamquery.engine.device import Device
from tests.devices.joins import check_join_keys, check_partition, check_take_or_null

SIZES = (0, 1, 33)


def test_join_keys(device: Device[Any]) -> None:
    check_join_keys(device, SIZES)


def test_take_or_null(device: Device[Any]) -> None:
    check_take_or_null(device, SIZES)


def test_partition(device: Device[Any]) -> None:
    check_partition(device, 60)
