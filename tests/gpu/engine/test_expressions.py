"""Every function and cast on a GPU against the CPU device, special values of every type."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest

from bamquery.engine.device import Device
from bamquery.engine.device_factory import open_device
from tests.devices import cases as device_cases
from tests.devices.cases import Case
from tests.devices.together import check_together

PARTS = {
    "arithmetic": 6,
    "casts": 5,
    "comparisons": 8,
    "conditions": 1,
    "instants": 1,
    "mathematics": 4,
    "strings": 1,
    "temporal": 2,
    "texts": 1,
}
"""Families, and into how many tests each is cut, which may run on processes of their own."""
_SHOWN = 40


@pytest.fixture(scope="module")
def operators(device: Device[Any]) -> Device[Any]:
    """The device without programs."""
    return open_device("cuda:0", programs=False)[0]


_EACH = [(family, part) for family, count in PARTS.items() for part in range(count)]


@pytest.mark.parametrize(("family", "part"), _EACH)
def test_functions(device: Device[Any], operators: Device[Any], family: str, part: int) -> None:
    """All cases, so that one run tells of all that differs."""
    cases: Iterable[Case]
    cases = device_cases.casts(device) if family == "casts" else getattr(device_cases, family)()
    mine = list(islice(cases, part, None, PARTS[family]))
    assert mine
    failures = check_together(device, operators, mine)
    shown = "\n".join(failures[:_SHOWN])
    assert not failures, f"{len(failures)} differences in {len(mine)} cases:\n{shown}"
