"""What a guest starts with: busybox, modules, the steps, and what they need."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.guests.initramfs import Archive
from tests.guests.kernel import Kernel, module_text
from tests.guests.packages import REPOSITORY, unpacked
from tests.guests.programs import FOLDER, Program
from tests.guests.steps import Step

EXIT: Final = Program((FOLDER / "exit.cpp",))
_SCRIPTS: Final = ("init.sh", "helpers.sh", "on_host.sh")
MODULES: Final = ("vfio-pci", "vfio_iommu_type1")
_MODULES_FOR_HOST_FILES: Final = ("virtiofs", "overlay")
_GUEST: Final = b'#!/bin/sh\n. /guest/helpers.sh\n"$@"\n'


def busybox() -> Path:
    """Linked statically. GuestsUnavailableError: it cannot be had."""
    return next(unpacked("busybox-static").rglob("bin/busybox"))


def archive(steps: Sequence[Step], kernel: Kernel, addresses: Sequence[str], driver: str) -> Archive:
    """The initramfs for these steps; drives at these PCI addresses go to `driver` first."""
    made = Archive()
    made.file("bin/busybox", busybox().read_bytes(), is_executable=True)
    made.character_device("dev/console", 5, 1)
    made.link("init", "guest/init.sh")
    for name in _SCRIPTS:
        made.file(f"guest/{name}", (FOLDER / name).read_bytes(), is_executable=True)
    made.link("guest/bin/on_host", "../on_host.sh")
    made.file("guest/bin/guest", _GUEST, is_executable=True)
    made.file("guest/bin/exit_code", _bytes_of(EXIT), is_executable=True)
    shares_host = any(step.on_host for step in steps)
    modules = kernel.load_order(*MODULES, *(_MODULES_FOR_HOST_FILES if shares_host else ()))
    for path in modules:
        made.file(f"guest/modules/{path.name.partition('.')[0]}", module_text(path))
    made.file("guest/modules/order", _lines(path.name.partition(".")[0] for path in modules))
    made.file("guest/drives", _lines(f"bind {address} {driver}" for address in addresses))
    made.file("guest/steps", _lines(shlex.join(["step", step.name, *_command(step)]) for step in steps))
    for step in steps:
        for name, content in step.files.items():
            made.file(name, _bytes_of(content), is_executable=True)
    return made


def _command(step: Step) -> list[str]:
    before = ["on_host", str(REPOSITORY)] if step.on_host else []
    return [str(step.seconds), *before, *step.command]


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _bytes_of(content: Path | Program | str) -> bytes:
    if isinstance(content, str):
        return content.encode()
    return (content.compiled() if isinstance(content, Program) else content).read_bytes()
