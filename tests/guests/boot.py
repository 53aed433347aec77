"""A boot of a guest: what it is made of, the run of it, and what came of it.

`python -m tests.guests.boot --program build/guests/programs/probe --drives 512:64M,4096:64M` runs one program
in a guest, for whoever is writing it; `--help` has the rest.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.guests import drives as nvme
from tests.guests.initramfs import Archive
from tests.guests.kernel import CLOUD, Kernel, module_text
from tests.guests.machine import command_line
from tests.guests.packages import CACHE, qemu, unpacked
from tests.guests.programs import FOLDER, Program
from tests.guests.results import StepLog, parse

FINISHED: Final = 33
"""QEMU's exit status where all steps ran to their end; a panic's is 0, as that of any guest that stops."""
_CRASHED: Final = -signal.SIGSEGV
_MODULES: Final = ("vfio-pci", "vfio_iommu_type1")
_INCLUDED: Final = ("init.sh", "helpers.sh")


@dataclass(frozen=True)
class Step:
    """One thing that a guest does.

    Attributes:
        name: of the step, once a boot.
        command: the program, and its arguments.
        checks: names of the results that it has to give, each once.
        seconds: after which it is killed.
        files: what it needs in the guest: paths from the root, and what is there.
    """

    name: str
    command: tuple[str, ...]
    checks: tuple[str, ...] = ()
    seconds: int = 60
    files: Mapping[str, Path | Program | str] = field(default_factory=dict)


def program(
    name: str, what: Program | Path, *arguments: str, checks: tuple[str, ...] = (), seconds: int = 60
) -> Step:
    """A step that runs a C++ program, linked statically."""
    path = f"guest/programs/{name}"
    return Step(name, (f"/{path}", *arguments), checks, seconds, {path: what})


def shell(name: str, script: str, *, checks: tuple[str, ...] = (), seconds: int = 60) -> Step:
    """A step that is a script for busybox's sh, with the functions of guest/helpers.sh."""
    path = f"guest/scripts/{name}.sh"
    return Step(name, ("sh", f"/{path}"), checks, seconds, {path: f". /guest/helpers.sh\n{script}\n"})


@dataclass(frozen=True)
class Boot:
    """What one guest is, and does.

    Attributes:
        name: of its logs.
        drives: attached, in this order.
        steps: run one after the other, whatever comes of them.
        driver: the guest's driver that gets the drives before the first step: `vfio-pci`, `nvme`, `none`.
        memory_mb: MiB.
        processors: of the guest.
        has_iommu: a virtual one.
        kernel: packages, the first of which that apt has is taken.
        seconds: after which QEMU is ended.
    """

    name: str
    drives: tuple[nvme.Drive, ...]
    steps: tuple[Step, ...]
    driver: str = "vfio-pci"
    memory_mb: int = 512
    processors: int = 2
    has_iommu: bool = True
    kernel: tuple[str, ...] = CLOUD
    seconds: int = 170

    def addresses(self) -> list[str]:
        """PCI addresses of the drives."""
        return [each.address_at(index) for index, each in enumerate(self.drives)]


@dataclass(frozen=True)
class Outcome:
    """What came of a boot.

    Attributes:
        status: QEMU's exit status, negative for a signal; None where time ran out.
        steps: what they said.
        seconds: that QEMU ran.
        folder: with the logs `console.log`, `output.log` and `qemu.log`, and the drives' images.
        crashes: runs before that ended because QEMU crashed.
    """

    status: int | None
    steps: dict[str, StepLog]
    seconds: float
    folder: Path
    crashes: int

    def why_not_finished(self) -> str | None:
        """Words for whoever reads that it failed; None where all steps ran."""
        if self.status == FINISHED:
            return None
        if self.status is None:
            what = f"no end after {self.seconds:.0f} s"
        elif self.status == _CRASHED:
            what = "QEMU crashed, twice"
        elif self.status == 0:
            what = "the guest stopped by itself: a panic, or its init ended"
        else:
            what = f"QEMU's exit status is {self.status}"
        said = [
            line
            for name in ("qemu", "console", "output")
            for line in _last_lines(self.folder / f"{name}.log")
        ]
        return "\n".join([f"{what}; logs are in {self.folder}", *said])


def run(boot: Boot) -> Outcome:
    """Boot it, once more where QEMU itself crashed: QEMU 7.2 does where controllers are reset under load.

    Raises:
        GuestsUnavailableError: guests cannot run here.
    """
    outcome = _run_once(boot, crashes=0)
    return _run_once(boot, crashes=1) if outcome.status == _CRASHED else outcome


def _run_once(boot: Boot, crashes: int) -> Outcome:
    emulator = qemu()
    kernel = Kernel.of(boot.kernel)
    folder = CACHE / "logs" / boot.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    initramfs = folder / "initramfs"
    initramfs.write_bytes(archive(boot, kernel).to_bytes())
    images = nvme.images(boot.drives, folder)
    command = [
        emulator,
        *command_line(
            kernel.image,
            initramfs,
            folder,
            memory_mb=boot.memory_mb,
            processors=boot.processors,
            has_iommu=boot.has_iommu,
        ),
        *nvme.arguments(boot.drives, images),
    ]
    (folder / "command").write_text(shlex.join(command) + "\n")
    begin = time.monotonic()
    with (folder / "qemu.log").open("w") as log:
        try:
            status: int | None = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=boot.seconds
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
    seconds = time.monotonic() - begin
    output = folder / "output.log"
    said = output.read_text("utf-8", "replace") if output.exists() else ""
    return Outcome(status, parse(said), seconds, folder, crashes)


def archive(boot: Boot, kernel: Kernel) -> Archive:
    """The guest's initramfs."""
    made = Archive()
    busybox = next(unpacked("busybox-static").rglob("bin/busybox"))
    made.file("bin/busybox", busybox.read_bytes(), is_executable=True)
    made.link("init", "guest/init.sh")
    for name in _INCLUDED:
        made.file(f"guest/{name}", (FOLDER / name).read_bytes(), is_executable=True)
    exit_code = Program((FOLDER / "exit.cpp",)).compiled()
    made.file("guest/bin/exit_code", exit_code.read_bytes(), is_executable=True)
    made.file("guest/bin/guest", b'#!/bin/sh\n. /guest/helpers.sh\n"$@"\n', is_executable=True)
    files = kernel.load_order(*_MODULES)
    for path in files:
        made.file(f"guest/modules/{path.name.partition('.')[0]}", module_text(path))
    made.file("guest/modules/order", "\n".join(path.name.partition(".")[0] for path in files).encode())
    binding = "".join(f"bind {address} {boot.driver}\n" for address in boot.addresses())
    made.file("guest/drives", binding.encode())
    lines = [shlex.join(["step", step.name, str(step.seconds), *step.command]) for step in boot.steps]
    made.file("guest/steps", "".join(f"{line}\n" for line in lines).encode())
    for step in boot.steps:
        for name, content in step.files.items():
            made.file(name, _bytes_of(content), is_executable=True)
    made.character_device("dev/console", 5, 1)
    return made


def _bytes_of(content: Path | Program | str) -> bytes:
    if isinstance(content, str):
        return content.encode()
    return (content.compiled() if isinstance(content, Program) else content).read_bytes()


def _last_lines(path: Path) -> list[str]:
    lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    return [f"  {path.name}: {line}" for line in lines[-8:]]


if __name__ == "__main__":
    from tests.guests.inner_loop import main

    raise SystemExit(main())
