"""The faults of `make mutation`: each fits into its function, and is there once it is put in."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest

from bamquery.engine.cpu.vectors import Vector
from bamquery.engine.windows import frames
from tests.mutation.mutants import Mutant, apply, list_mutants, record_lines
from tests.mutation.rooms import ROOMS, equivalent_mutants
from tests.selection.effort import spread

FILE = "engine/windows/frames.py"
ONE, TWO, THREE = (Vector(np.array([number])) for number in (1, 2, 3))


def _in_a_fork(work: Callable[[], bool]) -> bool:
    """What it returns in a process of its own, whose code may be changed."""
    process = os.fork()
    if not process:
        status = 2
        try:
            status = int(work())
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status in {0, 1}
    return bool(status)


def _one(before: str, after: str) -> Mutant:
    (found,) = [m for m in list_mutants(FILE) if (m.before, m.after) == (before, after)]
    return found


def _hole() -> list[tuple[int, int]]:
    """What frames 1 to 3 keep where row 2 is left out."""
    return [
        (int(r.start.values[0]), int(r.end.values[0])) for r in frames._exclude_hole(ONE, THREE, TWO, THREE)
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [("own < end", "own <= end"), ("open_ & before", "open_ | before"), ("-wanted", "wanted")],
)
def test_a_fault_is_listed_once(before: str, after: str) -> None:
    assert _one(before, after).file == FILE


def test_a_fault_is_put_in() -> None:
    (gone,) = [
        m for m in list_mutants(FILE) if m.after == "return None" and "start.maximum(before)" in m.before
    ]

    def changed() -> bool:
        apply(gone)
        return frames._exclude_hole(ONE, THREE, TWO, THREE) is None

    assert _in_a_fork(changed)
    assert _hole() == [(1, 2), (3, 3)]


@pytest.mark.long
@pytest.mark.parametrize("mutant", spread(list_mutants(FILE)[::6], 3), ids=lambda mutant: str(mutant.number))
def test_a_fault_fits_into_its_function(mutant: Mutant) -> None:
    def fits() -> bool:
        apply(mutant)
        return True

    assert _in_a_fork(fits)


def test_lines_that_run_are_seen() -> None:
    def seen() -> bool:
        lines: set[int] = set()
        record_lines(FILE, lines.add)
        _hole()
        first = frames._exclude_hole.__code__.co_firstlineno
        return bool(lines) and all(first < line <= first + 6 for line in lines)

    assert _in_a_fork(seen)


def test_what_is_listed_as_equivalent_is_there() -> None:
    keys = {mutant.key for room in ROOMS.values() for file in room.files() for mutant in list_mutants(file)}
    assert set(equivalent_mutants()) <= keys
