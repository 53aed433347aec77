"""Every function and cast on a GPU against the CPU device, special values of every type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from bamquery.engine.device import Device
from tests.devices import cases as device_cases
from tests.devices.cases import Case

FAMILIES = (
    *("arithmetic", "conditions", "strings", "temporal", "comparisons", "mathematics", "texts", "instants"),
)
_SHOWN = 40


@pytest.mark.parametrize("family", FAMILIES)
def test_functions(device: Device[Any], family: str) -> None:
    _check_all(device, getattr(device_cases, family)())


def test_casts(device: Device[Any]) -> None:
    _check_all(device, device_cases.casts(device))


def _check_all(device: Device[Any], cases: Iterable[Case]) -> None:
    """All cases, so that one run tells of all that differs."""
    failures: list[str] = []
    checked = 0
    for case in cases:
        checked += 1
        try:
            device_cases.check(device, case)
        except Exception as error:  # libcudf's own too, whichever it raises
            failures.append(f"{case.name}: {type(error).__name__}: {str(error)[:300]}")
    assert checked
    shown = "\n".join(failures[:_SHOWN])
    assert not failures, f"{len(failures)} of {checked} cases differ:\n{shown}"
