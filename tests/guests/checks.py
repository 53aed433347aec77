"""Boots as tests: one boot, and for each of its checks a test of its own."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.guests.boot import Boot, Outcome, run
from tests.guests.packages import GuestsUnavailableError, UntriedError
from tests.guests.verdicts import Check, declared, verdict

REQUIRED = "BAMQUERY_REQUIRE_GUESTS"
"""Set to 1 where guests have to run, as in CI: then whatever keeps them from it is a failure."""


def checks_of(boot: Boot) -> Callable[..., None]:
    """A test function with a case for each check, for a module to call `test_...`."""

    @pytest.mark.parametrize("check", declared(boot), ids=str)
    def test(check: Check, record_property: Callable[[str, object], None]) -> None:
        outcome = outcome_of(boot)
        found = verdict(boot, outcome, check)
        if check == Check():
            before = f"; run again, as {outcome.before}" if outcome.before else ""
            record_property("guest", f"{boot.name}: {found.words.splitlines()[0]}{before}")
        if found.kind == "skip":
            pytest.skip(found.words)
        assert found.kind == "ok", found.words

    return test


def outcome_of(boot: Boot) -> Outcome:
    """Of the boot, run when it is first asked for. The test is skipped where guests cannot run here."""
    found = _outcome(boot.name, lambda: run(boot))
    if isinstance(found, UntriedError):
        pytest.skip(str(found))
    if isinstance(found, GuestsUnavailableError):
        unavailable(str(found))
    if isinstance(found, Exception):
        raise found
    return found


def unavailable(reason: str) -> None:
    """Skips the test for this reason, or fails it where guests are required."""
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{REQUIRED}=1, but {reason}", pytrace=False)
    pytest.skip(reason)


_outcomes: dict[str, Outcome | Exception] = {}


def _outcome(name: str, make: Callable[[], Outcome]) -> Outcome | Exception:
    """Names are those of boots: one of the same name is the same."""
    if name not in _outcomes:
        try:
            _outcomes[name] = make()
        except Exception as error:  # each of the boot's tests says so
            _outcomes[name] = error
    return _outcomes[name]
