"""The machine that QEMU makes: its command line but for drives and the host's files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PATIENT: Final = ("no_timer_check", "tsc=reliable", "nowatchdog")
"""A guest's time stands still while others have the host's cores: kernels take that for broken timers."""
_MOST_PATIENT: Final = 8.0


def patience() -> float:
    """By how much limits of time are longer than on a host that has nothing else to do."""
    return min(_MOST_PATIENT, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


@dataclass(frozen=True)
class Machine:
    """A guest without its drives.

    Attributes:
        memory_mb: MiB.
        processors: of the guest; without KVM they take turns.
        has_iommu: a virtual one of Intel's, addresses of 39 bits, interrupts remapped.
        kernel_options: more for the kernel's command line.
        options: more for QEMU's.
    """

    memory_mb: int = 1024
    processors: int = 1
    has_iommu: bool = True
    kernel_options: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def arguments(self, image: Path, initramfs: Path, logs: Path, accelerator: str) -> list[str]:
        """QEMU's; in `logs` the kernel's lines go to `console.log`, what steps print to `output.log`."""
        kernel = ["console=ttyS0", "panic=-1", "quiet", "loglevel=5", *_PATIENT, *self.kernel_options]
        devices = ["isa-debug-exit,iobase=0xf4,iosize=4"]
        if self.has_iommu:
            kernel.append("intel_iommu=on")
            devices.append("intel-iommu,intremap=on,caching-mode=on")  # before those that it is for
        return [
            *("-accel", accelerator, "-cpu", "max", "-machine", "q35,kernel-irqchip=split"),
            *("-smp", str(self.processors), "-m", f"{self.memory_mb}M"),
            *("-nodefaults", "-no-reboot", "-display", "none"),
            *("-serial", f"file:{logs / 'console.log'}", "-serial", f"file:{logs / 'output.log'}"),
            *("-kernel", str(image), "-initrd", str(initramfs), "-append", " ".join(kernel)),
            *(word for device in devices for word in ("-device", device)),
            *self.options,
        ]
