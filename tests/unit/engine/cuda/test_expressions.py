"""Every function and cast of the cuda device, over a stand-in for libcudf, against the CPU device."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from bamquery.engine.device import Device
from tests import device_cases

EVERY = {
    "arithmetic": 7,
    "comparisons": 29,
    "conditions": 3,
    "strings": 1,
    "temporal": 2,
    "mathematics": 5,
    "texts": 1,
    "instants": 1,
}
"""Each so manieth case; a GPU sees all of them (tests/gpu/engine)."""


@pytest.mark.parametrize("family", EVERY)
def test_functions(device: Device[Any], family: str) -> None:
    for case in islice(getattr(device_cases, family)(), 0, None, EVERY[family]):
        device_cases.check(device, case)


def test_casts(device: Device[Any]) -> None:
    for case in islice(device_cases.casts(device), 0, None, 5):
        device_cases.check(device, case)
