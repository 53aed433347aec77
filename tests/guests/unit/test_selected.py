"""Guests boot by one target of the Makefile, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.guests.conftest import pytest_collection_modifyitems
from tests.guests.packages import REPOSITORY


@pytest.mark.parametrize("wanted", [True, False])
def test_boots_are_left_out_unless_they_are_asked_for(wanted: bool) -> None:
    left: list[Any] = []

    def deselected(items: list[Any]) -> None:
        left.extend(items)

    hook = SimpleNamespace(pytest_deselected=deselected)
    config: Any = SimpleNamespace(getoption=lambda _: wanted, hook=hook)
    marks: list[str] = []
    folder = REPOSITORY / "tests" / "guests"
    boot, other = (
        SimpleNamespace(path=path, add_marker=lambda mark: marks.append(mark.name))
        for path in (folder / "boots" / "test_x.py", Path(__file__))
    )
    items: Any = [boot, other]
    pytest_collection_modifyitems(config, items)
    assert marks == ["guest", "timeout"]
    assert (items, left) == ([boot, other], []) if wanted else ([other], [boot])


def test_one_target_asks_for_them() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = re.findall(r"^([\w-]+):.*\n(?:\t.*\n)*?\t.*--guests", makefile, re.MULTILINE)
    assert targets == ["test-qemu"]
