"""LIKE by a kernel on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from bamquery.engine.device import Device
from tests.devices import patterns


@pytest.mark.parametrize("rows", [1, 33, 70_000])
def test_patterns(device: Device[Any], rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.engine.cuda.strings import match_parts

    monkeypatch.setattr(match_parts, "MANY_ROWS", 1)
    device.session.launcher.kernel("strings/match_parts", "match_parts")  # type: ignore[attr-defined]
    patterns.check_like(device, match_parts.match_parts, rows, rows)
