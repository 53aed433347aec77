"""Boots that end otherwise than they should, and checks that say so; no guest is booted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guests import boot as booting
from tests.guests import checks
from tests.guests.boot import CRASHED, FINISHED, Boot, Outcome, emulate, run
from tests.guests.packages import GuestsUnavailableError, UntriedError
from tests.guests.results import parse
from tests.guests.steps import shell
from tests.guests.verdicts import Check, declared, verdict

BOOT = Boot("unit", (), (shell("one", "", checks=("a", "b")), shell("two", "", checks=("c",))))
SAID = (
    "begin one 1.0\nok a: seen\nFAIL b: not seen\nend one 0 2.0\nbegin two 2.0\nskip c: why\nend two 0 3.0\n"
)


def outcome(said: str, status: int | None, folder: Path) -> Outcome:
    return Outcome(status, parse(said), 4.0, folder)


@pytest.mark.parametrize(
    ("said", "status", "kinds"),
    [
        (SAID, FINISHED, "ok ok FAIL ok skip ok"),
        (SAID, 0, "ok ok FAIL ok skip FAIL"),
        (SAID.replace("end one 0", "end one 1"), FINISHED, "FAIL ok FAIL ok skip ok"),
        (SAID.replace("ok a", "ok d"), FINISHED, "FAIL FAIL FAIL ok skip ok"),
        (SAID.replace("ok a: seen\n", "ok a: seen\n" * 2), FINISHED, "FAIL ok FAIL ok skip ok"),
        (SAID[: SAID.index("end two")], None, "ok ok FAIL FAIL skip FAIL"),
        (SAID[: SAID.index("begin two")], CRASHED, "ok ok FAIL FAIL FAIL FAIL"),
        ("", 1, "FAIL FAIL FAIL FAIL FAIL FAIL"),
    ],
)
def test_each_check_has_a_verdict(said: str, status: int | None, kinds: str, tmp_path: Path) -> None:
    found = [verdict(BOOT, outcome(said, status, tmp_path), check) for check in declared(BOOT)]
    assert " ".join(each.kind for each in found) == kinds


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "no end after 4 s"),
        (0, "stopped by itself"),
        (CRASHED, "QEMU crashed"),
        (1, "QEMU's exit status is 1"),
    ],
)
def test_words_say_how_a_guest_ended(status: int | None, words: str, tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("Kernel panic - not syncing\n" + "trace\n" * 50)
    why = outcome("", status, tmp_path).why_not_finished()
    assert why is not None
    assert words in why
    assert "console.log: Kernel panic" in why
    assert why.count("trace") < 50


@pytest.mark.parametrize(
    ("runs", "before"),
    [
        ([(FINISHED, SAID)], ""),
        ([(CRASHED, SAID), (FINISHED, SAID)], "QEMU crashed"),
        ([(CRASHED, ""), (CRASHED, "")], "QEMU crashed"),
        ([(0, ""), (FINISHED, SAID)], "the kernel stopped before init"),
        ([(0, SAID)], ""),
        ([(None, "")], ""),
    ],
)
def test_what_fails_by_no_fault_of_a_step_is_run_once_more(
    runs: list[tuple[int | None, str]], before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(runs)

    def once(_: Boot) -> Outcome:
        status, said = left.pop(0)
        folder = tmp_path / "unit"
        folder.mkdir()
        (folder / "output.log").write_text(said)
        return outcome(said, status, folder)

    monkeypatch.setattr(booting, "_run", once)
    found = run(BOOT)
    assert (found.status, found.before, left) == (runs[-1][0], before, [])
    assert (tmp_path / "unit.before").exists() == bool(before)


def test_time_runs_out_and_the_command_is_kept(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        status, _ = emulate(["sleep", "60"], 0.01, tmp_path / "command", log)
        assert status is None
        assert emulate(["sh", "-c", "exit 33"], 60, tmp_path / "command", log)[0] == FINISHED
    assert (tmp_path / "command").read_text() == "sh -c 'exit 33'\n"


def test_names_of_checks_are_those_of_one() -> None:
    with pytest.raises(AssertionError, match="of one name"):
        declared(Boot("twice", (), (shell("a", "", checks=("b", "b")),)))


@pytest.mark.parametrize(
    ("required", "error", "raised"),
    [
        ("1", GuestsUnavailableError, pytest.fail.Exception),
        ("", GuestsUnavailableError, pytest.skip.Exception),
        ("1", UntriedError, pytest.skip.Exception),
    ],
)
def test_no_guest_is_a_failure_where_one_is_required(
    required: str,
    error: type[GuestsUnavailableError],
    raised: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cannot(_: Boot) -> Outcome:
        raise error("no apt-get here")

    monkeypatch.setattr(checks, "run", cannot)
    monkeypatch.setattr(checks, "_outcomes", {})
    monkeypatch.setenv(checks.REQUIRED, required)
    with pytest.raises(raised, match="no apt-get here"):
        checks.outcome_of(BOOT)


def test_a_boot_runs_once_for_all_its_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    monkeypatch.setattr(checks, "run", lambda boot: runs.append(boot) or outcome(SAID, FINISHED, tmp_path))
    monkeypatch.setattr(checks, "_outcomes", {})
    test = checks.checks_of(BOOT)
    said = []
    test(Check("one", "a"), lambda *_: None)
    test(Check(), lambda *words: said.append(words))
    with pytest.raises(AssertionError, match="not seen"):
        test(Check("one", "b"), lambda *_: None)
    with pytest.raises(pytest.skip.Exception, match="why"):
        test(Check("two", "c"), lambda *_: None)
    assert runs == [BOOT]
    assert said == [("guest", "unit: all steps ran, 4.0 s")]
