"""What goes wrong in a guest is told: checks that fail or vanish, programs that hang or crash, a panic."""

from __future__ import annotations

import pytest

from tests.guests.boot import Boot
from tests.guests.checks import outcome_of
from tests.guests.drives import drive
from tests.guests.steps import shell
from tests.guests.verdicts import Check, declared, verdict

BOOT = Boot(
    "planted-faults",
    (drive("1M"),),
    (
        shell("fails", "check good seen true; check bad seen false", checks=("good", "bad", "vanished")),
        shell("tells-more", "check a seen true; check b seen true; check b seen true", checks=("b",)),
        shell("hangs", "check before seen true; sleep 600", checks=("before", "after"), seconds=2),
        shell("crashes", "kill -SEGV $$", checks=("never",)),
        shell("cannot", "skip tried 'this guest has none of it'", checks=("tried",)),
        shell(
            "panics", "check said seen true; sleep 1; echo c >/proc/sysrq-trigger", checks=("said", "unsaid")
        ),
        shell("too-late", "check late seen true", checks=("late",)),
    ),
)
EXPECTED = {
    "fails": ("ok", " s"),
    "fails:good": ("ok", "seen"),
    "fails:bad": ("FAIL", "seen"),
    "fails:vanished": ("FAIL", "it gave no result"),
    "tells-more": ("FAIL", "results that it does not declare: a; more than one result: b"),
    "tells-more:b": ("ok", "seen"),
    "hangs": ("FAIL", "exit status 137, after "),
    "hangs:before": ("ok", "seen"),
    "hangs:after": ("FAIL", "it gave no result"),
    "crashes": ("FAIL", "exit status 139"),
    "crashes:never": ("FAIL", "it gave no result"),
    "cannot": ("ok", " s"),
    "cannot:tried": ("skip", "this guest has none of it"),
    "panics": ("FAIL", "the step did not end: the guest stopped by itself: a panic"),
    "panics:said": ("ok", "seen"),
    "panics:unsaid": ("FAIL", "it gave no result"),
    "too-late": ("FAIL", "the step did not begin: the guest stopped by itself: a panic"),
    "too-late:late": ("FAIL", "the step did not begin: the guest stopped by itself: a panic"),
    "boot": ("FAIL", "sysrq triggered crash"),
}


@pytest.mark.parametrize("check", declared(BOOT), ids=str)
def test_a_fault_is_told(check: Check) -> None:
    found = verdict(BOOT, outcome_of(BOOT), check)
    kind, words = EXPECTED[str(check)]
    assert (found.kind, words in found.words) == (kind, True), found


def test_each_is_expected() -> None:
    assert {str(check) for check in declared(BOOT)} == {*EXPECTED}
