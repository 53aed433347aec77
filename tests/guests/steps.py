"""What guests do, one step after the other: programs, shell, Python."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.guests.programs import Program


@dataclass(frozen=True)
class Step:
    """One thing that a guest does.

    Attributes:
        name: of the step, once a boot.
        command: the program, and its arguments.
        checks: names of the results that it has to give, each once.
        seconds: after which it is killed; longer where the host has more to do than this.
        files: what it needs in the guest: paths from the root, and what is there.
        on_host: it runs with the host's files as its own, in the repository's root.
    """

    name: str
    command: tuple[str, ...]
    checks: tuple[str, ...] = ()
    seconds: int = 60
    files: Mapping[str, Path | Program | str] = field(default_factory=dict)
    on_host: bool = False


def program(
    name: str, what: Program | Path, *arguments: str, checks: tuple[str, ...] = (), seconds: int = 60
) -> Step:
    """A step that runs a C++ program, linked statically."""
    path = f"guest/programs/{name}"
    return Step(name, (f"/{path}", *arguments), checks, seconds, {path: what})


def shell(
    name: str,
    script: str,
    *,
    checks: tuple[str, ...] = (),
    seconds: int = 60,
    files: Mapping[str, Path | Program | str] | None = None,
) -> Step:
    """A step that is a script for busybox's sh, with the functions of guest/helpers.sh."""
    path = f"guest/scripts/{name}.sh"
    text = f". /guest/helpers.sh\n{script}\n"
    return Step(name, ("sh", f"/{path}"), checks, seconds, {path: text, **(files or {})})


def python(name: str, *arguments: str, checks: tuple[str, ...] = (), seconds: int = 120) -> Step:
    """A step that runs this Python as it is here: `-m bamquery nvme list`, or the path of a script.

    Scripts take `check` and `skip` from `tests.guests.guest.check`.
    """
    return Step(name, (sys.executable, *arguments), checks, seconds, on_host=True)
