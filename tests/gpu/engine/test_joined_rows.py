"""Joins that the cuda device does by itself, on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from bamquery.engine.device import Device
from tests.devices import joined_rows as checks


def test_kinds(device: Device[Any]) -> None:
    checks.check_kinds(device)


def test_residuals(device: Device[Any]) -> None:
    checks.check_residuals(device)


def test_types(device: Device[Any]) -> None:
    checks.check_types(device)


def test_several_partners(device: Device[Any]) -> None:
    checks.check_several_partners(device)


def test_errors(device: Device[Any]) -> None:
    checks.check_errors(device)


def test_portions(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_portions(device, monkeypatch)


def test_texts_in_portions(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_texts_in_portions(device, monkeypatch)


def test_nothing_is_downloaded(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_nothing_is_downloaded(device, monkeypatch)
