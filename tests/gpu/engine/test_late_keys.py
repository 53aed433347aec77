"""Keys that stay in a GPU's memory."""

from __future__ import annotations

from typing import Any

import pytest

from bamquery.engine.device import Device
from tests.devices import late_keys


@pytest.mark.parametrize("rows", [4, 40, 5000])
def test_conditions_look_among_them(device: Device[Any], rows: int) -> None:
    late_keys.check_late_keys(device, rows)
