"""What runs a guest's instructions: the processor itself where KVM works, else QEMU's translator.

A device node says nothing: within a virtual machine it may be there without any use.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from tests.guests.kernel import Kernel
from tests.guests.packages import CACHE, locked

TCG: Final = "tcg,thread=single"
"""Processors of a guest take turns: with a thread each, one meets code that another is just patching, and the
kernel crashes in one boot of fifteen (QEMU 7.2)."""
KVM: Final = "kvm"
_NODE: Final = Path("/dev/kvm")
_PROBE_S: Final = 20
_STARTED: Final = "Linux version"


def accelerator(emulator: str, kernel: Kernel) -> str:
    """`KVM` where the processor has it and this kernel starts by it, else `TCG`; probed once."""
    if not has_extensions(Path("/proc/cpuinfo").read_text()) or not _NODE.exists():
        return TCG
    since = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = CACHE / f"accelerator-{since}"
    with locked("accelerator"):
        if not known.exists():
            known.write_text(KVM if _starts(emulator, kernel) else TCG)
        return known.read_text()


def has_extensions(cpuinfo: str) -> bool:
    """Whether a processor of `/proc/cpuinfo` can run guests: Intel calls it vmx, AMD svm."""
    return re.search(r"^flags\s*:.*\b(?:vmx|svm)\b", cpuinfo, re.MULTILINE) is not None


def _starts(emulator: str, kernel: Kernel) -> bool:
    """Whether it says its first words; with no file system it ends soon after."""
    command = [emulator, "-accel", KVM, "-machine", "q35,kernel-irqchip=split", "-cpu", "max", "-m", "256M"]
    command += [
        "-nodefaults",
        "-no-reboot",
        "-display",
        "none",
        "-serial",
        "stdio",
        "-kernel",
        str(kernel.image),
    ]
    command += ["-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return False
    return _STARTED in done.stdout and "panic" in done.stdout
