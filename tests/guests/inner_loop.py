"""`python -m tests.guests.boot`: a program or words of shell in a guest, for whoever is writing them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from tests.guests.boot import Boot, run
from tests.guests.drives import parsed
from tests.guests.machine import Machine
from tests.guests.programs import Program
from tests.guests.steps import program, python, shell


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where the guest ran to its end and no check failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.guests.boot", description=__doc__)
    parser.add_argument(
        "--program",
        type=Path,
        nargs="+",
        default=[],
        help="a static executable, or C++ sources; they print results",
    )
    parser.add_argument("--flags", default="", help="more for the compiler, as '-O0 -fsanitize=...'")
    parser.add_argument("--shell", help="words for the guest's shell, run after the program")
    parser.add_argument("--python", help="arguments of Python, as '-m bamquery nvme list', run last")
    parser.add_argument(
        "--drives",
        default="512:64M",
        help="LBA bytes and size, 512:64M,4096:1G:iops=2000 (default: %(default)s)",
    )
    parser.add_argument("--driver", default="vfio-pci", help="whose the drives are at first: nvme, none")
    parser.add_argument("--memory", type=int, default=1024, help="MiB of the guest (default: %(default)s)")
    parser.add_argument("--processors", type=int, default=1, help="of the guest (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=int, default=120, help="that each step may take (default: %(default)s)"
    )
    parser.add_argument("arguments", nargs="*", help="of the program, after --; else the drives' addresses")
    given = parser.parse_args(arguments)
    drives = tuple(parsed(given.drives))
    addresses = [each.address_at(index) for index, each in enumerate(drives)]
    steps = []
    if given.program:
        is_source = given.program[0].suffix == ".cpp"
        paths = tuple(path.resolve() for path in given.program)
        what = Program(paths, tuple(given.flags.split())) if is_source else paths[0]
        words = given.arguments or addresses
        steps.append(program("program", what, *words, seconds=given.seconds))
    if given.shell:
        steps.append(shell("shell", given.shell, seconds=given.seconds))
    if given.python:
        steps.append(python("python", *shlex.split(given.python), seconds=given.seconds))
    boot = Boot(
        "inner-loop",
        drives,
        tuple(steps),
        driver=given.driver,
        machine=Machine(given.memory, given.processors),
        seconds=given.seconds * max(1, len(steps)) + 60,
    )
    outcome = run(boot)
    print((outcome.folder / "output.log").read_text("utf-8", "replace"), end="")
    print(f"QEMU ran {outcome.seconds:.1f} s; logs are in {outcome.folder}")
    if why := outcome.why_not_finished():
        print(why)
    failed = [
        result.name for step in outcome.steps.values() for result in step.results if result.kind == "FAIL"
    ]
    ended = {step.name: step.status for step in outcome.steps.values() if step.status != 0}
    if failed or ended:
        print(f"failed: {' '.join(failed) or 'no check'}; exit statuses that are not 0: {ended or 'none'}")
    return int(bool(why or failed or ended))
