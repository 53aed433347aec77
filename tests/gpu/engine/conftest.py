"""The cuda device on a real GPU; skipped, with the reason, where libcudf is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bamquery.engine.device import Device
from bamquery.engine.device_factory import open_device
from bamquery.errors import SettingError
from tests.devices.kernels import waiting_for_kernels


@pytest.fixture(scope="session")
def device() -> Device[Any]:
    """The first GPU."""
    try:
        found, _ = open_device("cuda:0")
    except SettingError as error:
        pytest.skip(str(error))
    return found


@pytest.fixture(scope="session", autouse=True)
def kernels_are_awaited() -> Iterator[None]:
    """So that programs compute what they can."""
    with waiting_for_kernels():
        yield
