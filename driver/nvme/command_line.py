"""`bamquery nvme list | bind | unbind | test`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bamquery.driver.machine import Machine
from bamquery.driver.nvme.access import access_lines
from bamquery.driver.nvme.binding import (
    Step,
    bind,
    bind_steps,
    check_bind,
    check_unbind,
    unbind,
    unbind_steps,
)
from bamquery.driver.nvme.drives import Drive, find_drive
from bamquery.driver.nvme.listing import list_as_dict, list_as_lines
from bamquery.driver.nvme.obstacles import find_obstacles
from bamquery.driver.nvme.sysfs import Sysfs
from bamquery.errors import BamQueryError
from bamquery.text.terminal import escape_line

OK: Final = 0
_UNDO: Final = "to undo it: bamquery nvme unbind {}, or a restart; nothing is written to the drive"


def main(arguments: Sequence[str]) -> int:
    """Run one of the commands; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="bamquery nvme",
        description="NVMe drives, driven by BamQuery itself: no module of the kernel but vfio-pci.",
        epilog="docs/nvme.md says more. exit status: 0 done, 1 refused or failed, 2 wrong arguments",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (add_options, run, description) in _COMMANDS.items():
        command = commands.add_parser(name, help=description, description=description, allow_abbrev=False)
        add_options(command)
        command.set_defaults(run=run)
    options = parser.parse_args(list(arguments))
    status: int = options.run(options, Machine())
    return status


def list_drives(options: argparse.Namespace, machine: Machine) -> int:
    """`bamquery nvme list [--json]`."""
    if options.json:
        _print([json.dumps(list_as_dict(machine), indent=2)])
    else:
        _print(map(escape_line, list_as_lines(machine)))
    return OK


def bind_drives(options: argparse.Namespace, machine: Machine, sysfs: Sysfs | None = None) -> int:
    """`bamquery nvme bind ADDRESS... [--yes] [--dry-run]`."""
    drives = check_bind(machine, options.addresses)
    addresses = [drive.address for drive in drives]
    steps = bind_steps(machine, drives)
    if not steps:
        _print([f"{drive} is handed to user space already" for drive in drives])
    else:
        _print(_plan(drives, steps, "taken from the kernel, and given to vfio-pci for user space"))
        _print([_UNDO.format(" and ".join(addresses))])
        if options.dry_run:
            return OK
        _confirm(options)
        bind(sysfs or Sysfs(machine), addresses, _tell)
        _print([f"{drive} is handed to user space" for drive in drives])
    if not options.dry_run:
        _print(line for drive in drives for line in access_lines(machine, drive))
        _print([f"next: bamquery nvme test {addresses[0]}"])
    return OK


def unbind_drive(options: argparse.Namespace, machine: Machine, sysfs: Sysfs | None = None) -> int:
    """`bamquery nvme unbind ADDRESS [--dry-run]`."""
    drive = check_unbind(machine, options.address)
    steps = unbind_steps(machine, drive)
    if not steps:
        _print([f"{drive} is driven by the kernel already"])
        return OK
    _print(_plan([drive], steps, "given back to the kernel"))
    if not options.dry_run:
        unbind(sysfs or Sysfs(machine), drive.address, _tell)
        _print([f"{drive} is driven by the kernel"])
    return OK


def test_drive(options: argparse.Namespace, machine: Machine) -> int:
    """`bamquery nvme test ADDRESS [--json FILE] [--blocks N] [--nsid N]`."""
    place = find_drive(machine, options.address)
    if obstacles := find_obstacles(machine, place):
        raise BamQueryError(f"{place} cannot be tested: {'; '.join(map(str, obstacles))}")
    if not place.is_bound:
        raise BamQueryError(
            f"{place} is driven by {place.driver or 'nobody'} → bamquery nvme bind {place.address}"
        )
    # Only here: the rest needs no native code, and nothing of benchmarks.
    from bamquery.driver.nvme.trial_command import run_test  # noqa: PLC0415

    return run_test(machine, place, nsid=options.nsid, blocks=options.blocks, json_file=options.json)


def _plan(drives: Sequence[Drive], steps: Iterable[Step], what: str) -> Iterable[str]:
    for drive in drives:
        spaces = ", ".join(f"{namespace.name} not in use" for namespace in drive.namespaces)
        yield f"{drive}{f', {spaces},' if spaces else ''} is {what}:"
    yield from (f"    {step}" for step in steps)


def _confirm(options: argparse.Namespace) -> None:
    if options.yes:
        return
    if not sys.stdin or not sys.stdin.isatty():
        raise BamQueryError("nobody can be asked whether to go on: pass --yes, or --dry-run")
    sys.stdout.write("go on? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise BamQueryError("nothing was changed")


def _tell(line: str) -> None:
    sys.stderr.write(f"{escape_line(line)}\n")
    sys.stderr.flush()


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs")


def _add_bind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "addresses", metavar="ADDRESS", nargs="+", help="on the PCI bus, 0000:5e:00.0; several of one group"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and leave it")


def _add_unbind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", metavar="ADDRESS", help="on the PCI bus, 0000:5e:00.0")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and leave it")


def _add_test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", metavar="ADDRESS", help="on the PCI bus, 0000:5e:00.0")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the report, which one can send")
    parser.add_argument(
        "--blocks", metavar="N", type=_positive, default=1_000_000, help="read twice and compared (1000000)"
    )
    parser.add_argument("--nsid", metavar="N", type=_positive, help="the namespace (the first that is taken)")


def _positive(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 32:
        raise argparse.ArgumentTypeError(f"{text!r}: it takes a whole number from 1 on")
    return int(text)


Command = tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace, Machine], int], str]

_COMMANDS: Final[Mapping[str, Command]] = {
    "list": (_add_list, list_drives, "Drives, what uses them, and what is in the way of handing them over."),
    "bind": (_add_bind, bind_drives, "Hand a drive to user space: says what it does and how to undo it."),
    "test": (_add_test, test_drive, "Read a drive that was handed over, and report: writes nothing."),
    "unbind": (_add_unbind, unbind_drive, "Give a drive back to the kernel."),
}
