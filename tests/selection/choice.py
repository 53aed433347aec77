"""`--take`: which tests a target runs, of those that pytest finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.selection.recorded_seconds import (
    ALWAYS,
    FAST_S,
    MOST_S,
    files_of_long_tests,
    split_cases,
    split_tests,
)

CHOICES: Final = ("fast", "most", "rest", "beyond")
"""Tests that take little; not much; of the others as many cases of each function as `CASES_S` is enough
for; and the cases beyond that. The last three are all tests, each once."""
_BEYOND: Final = "cases_beyond"
_TESTS: Final = Path(__file__).parents[1]


def choose(items: Sequence[pytest.Item], choice: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """What is taken, and what is left out; both in order, and together all."""
    if choice == "fast":
        return split_tests(items, FAST_S)
    shorter, longer = split_tests(items, MOST_S, ALWAYS)
    if choice == "most":
        return shorter, longer
    some, beyond = split_cases(longer)
    return (some, [*shorter, *beyond]) if choice == "rest" else (beyond, [*shorter, *some])


class Choice:
    """A plugin that leaves out what is not asked for, and says at the end how many cases `rest` left."""

    def __init__(self, choice: str) -> None:
        """`choice` is one of `CHOICES`."""
        self._choice = choice
        self._files = files_of_long_tests() if choice in ("rest", "beyond") else None
        self._beyond = 0

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Import no file that has no test of those that are wanted: half of what is imported otherwise."""
        if self._files is None or collection_path.suffix != ".py":
            return None
        return None if collection_path.relative_to(_TESTS).as_posix() in self._files else True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out the others, of those that `-m` leaves: slow cases use up no seconds."""
        found = list(items)
        items[:], left = choose(found, self._choice)
        config.hook.pytest_deselected(items=left)
        if self._choice == "rest":
            self._beyond = len(choose(found, "beyond")[0])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker tells who started it."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_BEYOND] = self._beyond

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Each worker found the same."""
        self._beyond = getattr(node, "workeroutput", {}).get(_BEYOND, self._beyond)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Whoever reads that all passed knows what all were."""
        if self._beyond:
            terminalreporter.write_line(f"{self._beyond} more cases of these functions run in make test-slow")
