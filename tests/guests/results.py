"""What a guest said: its steps, and in each the results of checks.

Lines are `begin STEP SECONDS`, `end STEP STATUS SECONDS`, and between them, among others,

    ok NAME: detail
    FAIL NAME: detail
    skip NAME: reason
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_RESULT: Final = re.compile(r"(?P<kind>ok|FAIL|skip)\s+(?P<name>[\w./-]+): ?(?P<detail>.*)")
_BEGIN: Final = re.compile(r"begin (?P<name>\S+) (?P<seconds>[\d.]+)")
_END: Final = re.compile(r"end (?P<name>\S+) (?P<status>\d+) (?P<seconds>[\d.]+)")


@dataclass(frozen=True)
class Result:
    """Of one check: `kind` is `ok`, `FAIL` or `skip`."""

    kind: str
    name: str
    detail: str


@dataclass
class StepLog:
    """What a step said.

    Attributes:
        results: of its checks, in order.
        lines: all that it printed.
        begun_s: seconds after the guest started.
        seconds: that it took; None where it did not end.
        status: its exit status; None where it did not end.
    """

    name: str
    begun_s: float
    results: list[Result] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    seconds: float | None = None
    status: int | None = None


def parse(text: str) -> dict[str, StepLog]:
    """Steps by name. A line that is cut off, as a crash leaves it, is no result.

    Raises:
        ValueError: a step begins twice.
    """
    steps: dict[str, StepLog] = {}
    current: StepLog | None = None
    for line in text.replace("\r\n", "\n").split("\n")[:-1]:
        if current is None:
            if begin := _BEGIN.fullmatch(line):
                if begin["name"] in steps:
                    raise ValueError(f"step {begin['name']} begins twice")
                current = steps[begin["name"]] = StepLog(begin["name"], float(begin["seconds"]))
        elif (end := _END.fullmatch(line)) and end["name"] == current.name:
            current.status = int(end["status"])
            current.seconds = float(end["seconds"]) - current.begun_s
            current = None
        else:
            current.lines.append(line)
            if found := _RESULT.fullmatch(line):
                current.results.append(Result(found["kind"], found["name"], found["detail"]))
    return steps
