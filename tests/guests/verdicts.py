"""What a boot's checks came to, each for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.guests.boot import Boot, Outcome
from tests.guests.results import StepLog

_LAST_LINES: Final = 12


@dataclass(frozen=True)
class Check:
    """Of a boot: one that a step declares; without a name the step itself; without a step the whole boot."""

    step: str = ""
    name: str = ""

    def __str__(self) -> str:
        return ":".join(filter(None, [self.step, self.name])) or "boot"


@dataclass(frozen=True)
class Verdict:
    """`kind` is `ok`, `FAIL` or `skip`; the words say what was seen."""

    kind: str
    words: str


def declared(boot: Boot) -> list[Check]:
    """All of a boot: each of these has a verdict, whatever the guest said or did not say."""
    checks = [Check(step.name, name) for step in boot.steps for name in ("", *step.checks)]
    assert len({*checks}) == len(checks), f"{boot.name}: steps or checks of one name"
    return [*checks, Check()]


def verdict(boot: Boot, outcome: Outcome, check: Check) -> Verdict:
    """Of one of those that `declared` names.

    A check that gave no result fails. So does a step that gave others than it declares, a result twice, or
    another exit status than 0; and a boot whose steps did not all run.
    """
    if not check.step:
        why = outcome.why_not_finished()
        return Verdict("FAIL", why) if why else Verdict("ok", f"all steps ran, {outcome.seconds:.1f} s")
    log = outcome.steps.get(check.step)
    if log is None:
        return Verdict("FAIL", f"the step did not begin: {outcome.why_not_finished() or 'init left it out'}")
    if not check.name:
        (step,) = (step for step in boot.steps if step.name == check.step)
        return _of_step(log, step.checks, step.seconds, outcome)
    results = [result for result in log.results if result.name == check.name]
    if not results:
        return Verdict("FAIL", _with_end("it gave no result", log))
    return Verdict(results[0].kind, results[0].detail)


def _of_step(log: StepLog, checks: tuple[str, ...], seconds: int, outcome: Outcome) -> Verdict:
    if log.seconds is None:
        return Verdict("FAIL", f"the step did not end: {outcome.why_not_finished()}")
    names = [result.name for result in log.results]
    faults = []
    if log.status:
        late = f", after {log.seconds:.0f} s of {seconds}" if log.seconds >= seconds else ""
        faults.append(f"exit status {log.status}{late}")
    if unknown := sorted({*names} - {*checks}):
        faults.append(f"results that it does not declare: {' '.join(unknown)}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        faults.append(f"more than one result: {' '.join(twice)}")
    if faults:
        return Verdict("FAIL", _with_end("; ".join(faults), log))
    return Verdict("ok", f"{log.seconds:.1f} s")


def _with_end(words: str, log: StepLog) -> str:
    return "\n".join([f"{words}; the step ended with", *(f"  {line}" for line in log.lines[-_LAST_LINES:])])
