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
RECORD: Final = Path(__file__).with_suffix(".json")


def split_tests(items: Sequence[pytest.Item], seconds: float) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Those that are not known to take so long, and those that are; both in order, and together all."""
    record: Mapping[str, float] = json.loads(RECORD.read_text())
    parts: tuple[list[pytest.Item], list[pytest.Item]] = ([], [])
    for item in items:
        parts[record.get(_function(item.nodeid), 0.0) >= seconds].append(item)
    return parts


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


def _function(node: str) -> str:
    """A test without its parameters, below `tests`."""
    return node.partition("[")[0].removeprefix("tests/")
