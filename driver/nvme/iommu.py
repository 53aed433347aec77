"""The IOMMU, its groups, and VFIO: what a drive needs to be driven from user space safely."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from bamquery.driver.machine import Machine

VFIO_PCI: Final = "vfio-pci"
SWITCH_ON: Final = "switch the IOMMU on in the firmware (VT-d, AMD-Vi), and intel_iommu=on for the kernel"
_NOT_IN_THE_WAY: Final = (None, VFIO_PCI, "pci-stub", "pcieport")
"""Drivers that make no DMA of their own: a group with these is one that VFIO opens."""
_BRIDGE: Final = "0x06"
_CLASSES: Final = {
    "0x0106": "SATA controller",
    "0x0107": "SAS controller",
    "0x0108": "NVMe drive",
    "0x01": "storage controller",
    "0x02": "network card",
    "0x0300": "GPU",
    "0x0302": "GPU",
    "0x0403": "sound",
    "0x06": "bridge",
    "0x0c03": "USB controller",
    "0x12": "accelerator",
}
"""Beginnings of PCI's class codes; the longest that fits counts."""


class Module(StrEnum):
    """Where a module of the kernel is."""

    LOADED = "loaded"
    LOADABLE = "loadable"
    ABSENT = "absent"
    UNKNOWN = "unknown"
    """The modules of this kernel are not to be seen, as in containers."""


@dataclass(frozen=True)
class Iommu:
    """What the machine has of an IOMMU and of VFIO.

    Attributes:
        units: of the IOMMU, as the kernel calls them.
        groups: how many.
        vfio_pci: the module that drives are bound to.
        interfaces: device files by which VFIO is asked: the container's, and that of iommufd.
        without: the kernel lets VFIO work without an IOMMU, which nobody should.
    """

    units: tuple[str, ...]
    groups: int
    vfio_pci: Module
    interfaces: tuple[str, ...]
    without: bool

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"vfio_pci": str(self.vfio_pci)}


@dataclass(frozen=True)
class Member:
    """Another device of a drive's IOMMU group.

    Attributes:
        address: on the PCI bus.
        kind: in words.
        driver: that it is bound to.
        blocks: VFIO opens no group in which this device stays as it is.
    """

    address: str
    kind: str
    driver: str | None
    blocks: bool

    def __str__(self) -> str:
        return f"{self.address} ({self.kind}, driver: {self.driver or 'none'})"


def find_iommu(machine: Machine) -> Iommu:
    """What there is."""
    interfaces = [name for name in ("/dev/vfio/vfio", "/dev/iommu") if machine.exists(name)]
    unsafe = machine.text("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode")
    return Iommu(
        units=tuple(unit.name for unit in machine.glob("/sys/class/iommu/*")),
        groups=len(machine.glob("/sys/kernel/iommu_groups/*")),
        vfio_pci=_vfio_pci(machine),
        interfaces=tuple(interfaces),
        without=unsafe == "Y",
    )


def members_beside(machine: Machine, group: str, address: str) -> tuple[Member, ...]:
    """Devices of a group, this one left out."""
    devices = machine.glob(f"/sys/kernel/iommu_groups/{group}/devices/*")
    return tuple(_member(machine, device) for device in devices if device.name != address)


def group_type(machine: Machine, group: str) -> str | None:
    """How the kernel's own driver is translated: `DMA`, `DMA-FQ`, or `identity`, which is not at all."""
    return machine.text(f"/sys/kernel/iommu_groups/{group}/type")


def _member(machine: Machine, device: Path) -> Member:
    code = machine.text(device / "class") or ""
    fits = [beginning for beginning in _CLASSES if code.startswith(beginning)]
    driver = machine.link(device / "driver")
    return Member(
        address=device.name,
        kind=_CLASSES[max(fits, key=len)] if fits else f"class {code or 'unknown'}",
        driver=driver,
        blocks=driver not in _NOT_IN_THE_WAY and not code.startswith(_BRIDGE),
    )


def _vfio_pci(machine: Machine) -> Module:
    if machine.exists(f"/sys/bus/pci/drivers/{VFIO_PCI}"):
        return Module.LOADED
    folder = f"/lib/modules/{machine.text('/proc/sys/kernel/osrelease')}"
    names = [machine.text(f"{folder}/{name}") for name in ("modules.dep", "modules.builtin")]
    if not any(names):
        return Module.UNKNOWN
    return Module.LOADABLE if any("/vfio-pci.ko" in (text or "") for text in names) else Module.ABSENT
