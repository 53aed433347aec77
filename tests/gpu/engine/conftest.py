"""The cuda device on a real GPU; skipped, with the reason, where libcudf is not."""

from __future__ import annotations

from typing import Any

import pytest

from bamquery.engine.device import Device
from bamquery.engine.device_factory import open_device
from bamquery.errors import SettingError


@pytest.fixture(scope="session")
def device() -> Device[Any]:
    """The first GPU."""
    try:
        found, _ = open_device("cuda:0")
    except SettingError as error:
        pytest.skip(str(error))
    return found
