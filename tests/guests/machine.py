"""The machine that QEMU makes: its command line but for drives."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_IOMMU: Final = ("-device", "intel-iommu,intremap=on,caching-mode=on")


def command_line(
    image: Path,
    initramfs: Path,
    logs: Path,
    *,
    memory_mb: int,
    processors: int,
    has_iommu: bool,
    accelerator: str = "tcg,thread=multi",
) -> list[str]:
    """Arguments of QEMU: kernel lines go to `console.log` in `logs`, what steps print to `output.log`."""
    kernel = ["console=ttyS0", "panic=-1", "quiet", "loglevel=5"]
    if has_iommu:
        kernel.append("intel_iommu=on")
    return [
        *("-accel", accelerator),
        *("-machine", "q35,kernel-irqchip=split"),
        *("-cpu", "max", "-smp", str(processors), "-m", f"{memory_mb}M"),
        *("-nodefaults", "-no-reboot", "-display", "none"),
        *("-serial", f"file:{logs / 'console.log'}", "-serial", f"file:{logs / 'output.log'}"),
        *("-kernel", str(image), "-initrd", str(initramfs), "-append", " ".join(kernel)),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=4"),
        *(_IOMMU if has_iommu else ()),
    ]
