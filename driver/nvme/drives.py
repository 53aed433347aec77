"""NVMe drives of this machine, whoever drives them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bamquery.driver.machine import Machine, gib
from bamquery.driver.nvme.iommu import VFIO_PCI, Member, group_type, members_beside
from bamquery.driver.nvme.uses import Use, find_uses
from bamquery.errors import BamQueryError
from bamquery.text.terminal import escape_line

KERNEL: Final = "nvme"
"""The kernel's own driver."""
_CLASS: Final = "0x010802"
"""Mass storage, non-volatile memory, NVM Express."""
_SECTOR: Final = 512
"""Unit of `size` in sysfs, whatever the logical block."""
_ADDRESS: Final = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")


@dataclass(frozen=True)
class KernelNamespace:
    """A namespace, as long as the kernel drives it.

    Attributes:
        name: of the block device.
        nsid: its number.
        bytes: its size.
        block_bytes: of a logical block.
        metadata_bytes: beside each block.
        uses: why it must not be taken.
    """

    name: str
    nsid: int | None
    bytes: int
    block_bytes: int | None
    metadata_bytes: int | None
    uses: tuple[Use, ...]

    def __str__(self) -> str:
        uses = ", ".join(map(str, self.uses)) or "not in use"
        return f"{self.name}: {gib(self.bytes)}, blocks of {self.block_bytes or 'unknown'} bytes, {uses}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "namespace": self.name,
            "nsid": self.nsid,
            "bytes": self.bytes,
            "lba_bytes": self.block_bytes,
            "metadata_bytes": self.metadata_bytes,
            "uses": [use.to_dict() for use in self.uses],
        }


@dataclass(frozen=True)
class Drive:
    """A drive on the PCI bus.

    Attributes:
        address: on the bus, `0000:5e:00.0`.
        ids: of vendor and device, `8086:2701`.
        driver: that it is bound to.
        controller: the kernel's name of it, `nvme0`; None where the kernel does not drive it.
        model: and firmware, which only the kernel's driver knows.
        firmware: see model.
        namespaces: see model.
        group: its IOMMU group.
        group_type: how the kernel's own driver is translated there.
        members: other devices of the group.
    """

    address: str
    ids: str
    driver: str | None
    controller: str | None
    model: str | None
    firmware: str | None
    namespaces: tuple[KernelNamespace, ...]
    group: str | None
    group_type: str | None
    members: tuple[Member, ...]

    @property
    def is_bound(self) -> bool:
        """Whether it is handed to user space."""
        return self.driver == VFIO_PCI

    @property
    def uses(self) -> tuple[Use, ...]:
        """Of all namespaces."""
        return tuple(use for namespace in self.namespaces for use in namespace.uses)

    def __str__(self) -> str:
        model = escape_line(self.model) if self.model else f"drive {self.ids}"
        return f"{self.address} ({model})"


def find_drives(machine: Machine) -> list[Drive]:
    """All, by address."""
    devices = machine.glob("/sys/bus/pci/devices/*")
    return [_drive(machine, device) for device in devices if machine.text(device / "class") == _CLASS]


def find_drive(machine: Machine, address: str) -> Drive:
    """The drive at an address.

    Raises:
        BamQueryError: there is none; says what is there, or which drives there are.
    """
    match = _ADDRESS.fullmatch(address.strip().lower())
    full = f"{match[1] or '0000'}:{match[2]}" if match else ""
    device = machine.path(f"/sys/bus/pci/devices/{full}")
    if match and machine.text(device / "class") == _CLASS:
        return _drive(machine, device)
    there = ", ".join(drive.address for drive in find_drives(machine)) or "none"
    if match is None:
        raise BamQueryError(
            f"{address!r} is no address on the PCI bus, such as 0000:5e:00.0; NVMe drives here: {there}"
            " (bamquery nvme list)"
        )
    code = machine.text(device / "class")
    what = "there is no device" if code is None else f"the device, of class {code}, is no NVMe drive"
    raise BamQueryError(f"{full}: {what}; NVMe drives here: {there} (bamquery nvme list)")


def namespaces_of(machine: Machine, controller: str) -> tuple[KernelNamespace, ...]:
    """Those of one of the kernel's controllers."""
    found = []
    for entry in machine.glob(f"/sys/class/nvme/{controller}/nvme*n*"):
        # With several ways to a subsystem, nvme0c1n1 is one of the ways to nvme0n1, which is what one opens.
        if way := re.fullmatch(r"nvme(\d+)c\d+n(\d+)", entry.name):
            entry = machine.path(f"/sys/class/block/nvme{way[1]}n{way[2]}")  # noqa: PLW2901
        if re.fullmatch(r"nvme\d+n\d+", entry.name) and entry.exists():
            found.append(_namespace(machine, entry))
    return tuple(found)


def _namespace(machine: Machine, device: Path) -> KernelNamespace:
    return KernelNamespace(
        name=device.name,
        nsid=machine.number(device / "nsid"),
        bytes=(machine.number(device / "size") or 0) * _SECTOR,
        block_bytes=machine.number(device / "queue/logical_block_size"),
        metadata_bytes=machine.number(device / "metadata_bytes"),
        uses=find_uses(machine, device),
    )


def _drive(machine: Machine, device: Path) -> Drive:
    real = device.resolve()
    folder = next(
        (path for path in machine.glob("/sys/class/nvme/nvme*") if (path / "device").resolve() == real), None
    )
    group = machine.link(device / "iommu_group")
    ids = [(machine.text(device / name) or "unknown").removeprefix("0x") for name in ("vendor", "device")]
    return Drive(
        address=device.name,
        ids=":".join(ids),
        driver=machine.link(device / "driver"),
        controller=folder.name if folder else None,
        model=machine.text(folder / "model") if folder else None,
        firmware=machine.text(folder / "firmware_rev") if folder else None,
        namespaces=namespaces_of(machine, folder.name) if folder else (),
        group=group,
        group_type=group_type(machine, group) if group else None,
        members=members_beside(machine, group, device.name) if group else (),
    )
