"""A boot of a guest: what it is, the run of it, and what came of it.

`python -m tests.guests.boot --program tests/guests/guest/probe.cpp --drives 512:64M,4096:64M` runs one
program in a guest, for whoever is writing it; `--help` has the rest.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Final

from tests.guests import drives as nvme
from tests.guests.accelerator import accelerator
from tests.guests.contents import archive
from tests.guests.host_files import shared
from tests.guests.kernel import Kernel, cloud_kernel
from tests.guests.machine import Machine, patience
from tests.guests.packages import CACHE, qemu
from tests.guests.results import StepLog, parse
from tests.guests.steps import Step

FINISHED: Final = 33
"""QEMU's exit status where all steps ran to their end; a panic's is 0, as that of any guest that stops."""
CRASHED: Final = -signal.SIGSEGV
_LAST_LINES: Final = 8
_PANIC: Final = "Kernel panic"


@dataclass(frozen=True)
class Boot:
    """What one guest is, and does.

    Attributes:
        name: of its logs.
        drives: attached, in this order.
        steps: run one after the other, whatever comes of them.
        driver: the guest's driver that gets the drives before the first step: `vfio-pci`, `nvme`, `none`.
        machine: the rest of it.
        kernel: gets its kernel.
        seconds: after which QEMU is ended; this, and what steps may take, is for an idle host.
    """

    name: str
    drives: tuple[nvme.Drive, ...]
    steps: tuple[Step, ...]
    driver: str = "vfio-pci"
    machine: Machine = field(default_factory=Machine)
    kernel: Callable[[], Kernel] = cloud_kernel
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
        folder: with `console.log` (the kernel's lines), `output.log` (the steps'), `qemu.log`, `command`, and
            the drives' images as the guest left them.
        before: why it was run again: what became of the first run, whose logs are beside, in `NAME.before`.
    """

    status: int | None
    steps: dict[str, StepLog]
    seconds: float
    folder: Path
    before: str = ""

    def why_not_finished(self) -> str | None:
        """Words for whoever reads that it failed; None where all steps ran."""
        if self.status == FINISHED:
            return None
        if self.status is None:
            what = f"no end after {self.seconds:.0f} s"
        elif self.status == CRASHED:
            what = "QEMU crashed"
        elif self.status == 0:
            what = "the guest stopped by itself: a panic, or its init ended"
        else:
            what = f"QEMU's exit status is {self.status}"
        said = [line for name in ("qemu", "console", "output") for line in _worth_reading(self.folder, name)]
        return "\n".join([f"{what}; logs are in {self.folder}", *said])


def run(boot: Boot) -> Outcome:
    """Boot it, once more where that failed by no fault of what runs in it, and say so.

    QEMU 7.2 crashes where controllers are reset under load. In rare boots the kernel panics before init.

    Raises:
        GuestsUnavailableError: guests cannot run here.
    """
    outcome = _run(boot)
    if outcome.status == CRASHED:
        before = "QEMU crashed"
    elif outcome.status == 0 and not (outcome.folder / "output.log").read_text("utf-8", "replace"):
        before = "the kernel stopped before init"
    else:
        return outcome
    kept = outcome.folder.with_name(f"{boot.name}.before")
    shutil.rmtree(kept, ignore_errors=True)
    outcome.folder.rename(kept)
    return replace(_run(boot), before=before)


def _run(boot: Boot) -> Outcome:
    emulator = qemu()
    kernel = boot.kernel()
    folder = CACHE / "logs" / boot.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    initramfs = folder / "initramfs"
    factor = patience()
    steps = [replace(step, seconds=int(step.seconds * factor)) for step in boot.steps]
    initramfs.write_bytes(archive(steps, kernel, boot.addresses(), boot.driver).to_bytes())
    images = nvme.images(boot.drives, folder)
    machine = boot.machine.arguments(kernel.image, initramfs, folder, accelerator(emulator, kernel))
    command = [emulator, *machine, *nvme.arguments(boot.drives, images)]
    shares_host = any(step.on_host for step in boot.steps)
    with (
        (folder / "qemu.log").open("w") as log,
        shared(boot.machine.memory_mb, log) if shares_host else nullcontext([]) as more,
    ):
        status, seconds = emulate([*command, *more], boot.seconds * factor, folder / "command", log)
    output = folder / "output.log"
    said = output.read_text("utf-8", "replace") if output.exists() else ""
    return Outcome(status, parse(said), seconds, folder)


def emulate(command: list[str], seconds: float, script: Path, log: IO[str]) -> tuple[int | None, float]:
    """QEMU's exit status, None where time ran out, and the seconds it took; `script` keeps its command."""
    script.write_text(shlex.join(command) + "\n")
    begin = time.monotonic()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - begin
    return done.returncode, time.monotonic() - begin


def _worth_reading(folder: Path, name: str) -> list[str]:
    """What a log ends with, and why a kernel gave up, which a trace follows."""
    path = folder / f"{name}.log"
    lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    shown = [line for line in lines[:-_LAST_LINES] if _PANIC in line] + lines[-_LAST_LINES:]
    return [f"  {path.name}: {line}" for line in shown]


if __name__ == "__main__":
    from tests.guests.inner_loop import main

    raise SystemExit(main())
