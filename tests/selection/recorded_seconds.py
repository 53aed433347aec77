"""How long tests took when `make record-seconds` last ran, by which `make test` and others choose theirs.

What is not in the record is new, or was short: it is taken. The record is a file of one line for each test
function that takes long, in seconds for one set of its parameters.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

LONG_S: Final = 0.04
"""What a test takes that is not in the record, at most."""
FAST_S: Final = 0.04
"""What `make test-fast` leaves out takes as long."""
MOST_S: Final = 0.25
"""What `make test` leaves to `make test-rest` takes as long: a tenth of the tests, most of the time."""
CASES_S: Final = 1.0
"""What `make test-rest` takes for one function's sets of parameters; others are left to `make test-slow`."""
WHOLE: Final = "whole"
"""The mark of functions of which it takes all: each proves what no other does."""
ALWAYS: Final = "always"
"""The mark of functions that `make test` takes, however long they take: of what nothing else shows there."""
RECORD: Final = Path(__file__).with_suffix(".json")

_GOLDEN: Final = (5**0.5 - 1) / 2


def split_tests(
    items: Sequence[pytest.Item], seconds: float, mark: str = ""
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Those that are not known to take so long, and those that are; both in order, and together all.

    What has the mark, if one is given, is among the first.
    """
    record = _read()
    parts: tuple[list[pytest.Item], list[pytest.Item]] = ([], [])
    for item in items:
        is_long = record.get(_function(item.nodeid), 0.0) >= seconds
        parts[is_long and not (mark and item.get_closest_marker(mark))].append(item)
    return parts


def split_cases(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Of each function some sets of parameters, and all others; both in order, and together all.

    Some are as many as take `CASES_S` by the record, and never none; all, where the function is marked
    `WHOLE`. They are spread: values of parameters that no other has come first.
    """
    record = _read()
    functions: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        functions[_function(item.nodeid)].append(item)
    taken: set[pytest.Item] = set()
    for name, cases in functions.items():
        seconds = record.get(name, 0.0)
        is_whole = seconds * len(cases) <= CASES_S or cases[0].get_closest_marker(WHOLE) is not None
        count = len(cases) if is_whole else max(1, int(CASES_S / seconds))
        taken.update(cases[i] for i in _spread([_values(item) for item in cases], count))
    return [item for item in items if item in taken], [item for item in items if item not in taken]


def files_of_long_tests() -> frozenset[str]:
    """Where the tests are that take `MOST_S`, below `tests`: whoever takes no others need not import more."""
    return frozenset(name.partition("::")[0] for name, seconds in _read().items() if seconds >= MOST_S)


class Recorder:
    """A plugin that writes the record when all tests are through."""

    def __init__(self) -> None:
        """Nothing has run."""
        self._seconds: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what a test takes before, during and after it."""
        self._seconds[_function(report.nodeid)][report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write what is long."""
        means = {name: sum(each.values()) / len(each) for name, each in sorted(self._seconds.items())}
        long = {name: round(mean, 2) for name, mean in means.items() if mean >= LONG_S}
        RECORD.write_text(json.dumps(long, indent=0) + "\n")


def _read() -> Mapping[str, float]:
    record: Mapping[str, float] = json.loads(RECORD.read_text())
    return record


def _function(node: str) -> str:
    """A test without its parameters, below `tests`."""
    return node.partition("[")[0].removeprefix("tests/")


def _values(item: pytest.Item) -> frozenset[tuple[str, int]]:
    """Each parameter with its value's place among those that it has."""
    call = getattr(item, "callspec", None)  # which tests without parameters have not
    return frozenset() if call is None else frozenset(call.indices.items())


def _spread(cases: Sequence[frozenset[tuple[str, int]]], count: int) -> list[int]:
    """The places of so many cases.

    The next is one of those with the most values that none before has. Among equals multiples of the golden
    ratio decide: however many are taken, they lie evenly.
    """
    if count >= len(cases):
        return list(range(len(cases)))
    left = sorted(range(len(cases)), key=lambda i: i * _GOLDEN % 1)
    seen: set[tuple[str, int]] = set()
    taken = []
    for _ in range(count):
        best = max(left, key=lambda i: len(cases[i] - seen))
        left.remove(best)
        seen |= cases[best]
        taken.append(best)
    return taken
