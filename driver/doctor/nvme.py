"""NVMe drives, and what it would take to drive them from user space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bamquery.driver.doctor.machine import Finding, Level, Machine, gib
from bamquery.driver.doctor.pcie import read_link

_NVME_CLASS: Final = "0x010802"
"""Mass storage, non-volatile memory, NVM Express."""
_SECTOR: Final = 512
"""Unit of `size` in sysfs, whatever the logical block."""


def check_drives(machine: Machine) -> Iterator[Finding]:
    """Controllers that the kernel drives, with their namespaces, and those that something else drives."""
    controllers = machine.glob("/sys/class/nvme/nvme*")
    for controller in controllers:
        yield from _controller(machine, controller)
    others = _not_the_kernels(machine)
    yield from others
    if not controllers and not others:
        yield Finding(
            "NVMe",
            Level.NOTE,
            "no NVMe controller",
            "files are read from whatever disk holds them, by the software controller",
            "nothing; a local NVMe drive makes random reads fast",
        )


def check_iommu(machine: Machine) -> Iterator[Finding]:
    """Whether drives could be handed to user space safely."""
    units = machine.glob("/sys/class/iommu/*")
    groups = machine.glob("/sys/kernel/iommu_groups/*")
    vfio = machine.exists("/sys/bus/pci/drivers/vfio-pci")
    interfaces = [name for name in ("/dev/vfio/vfio", "/dev/iommu") if machine.exists(name)]
    values = {
        "units": len(units),
        "groups": len(groups),
        "vfio_pci": vfio,
        "interfaces": interfaces,
    }
    found = (
        f"{len(groups)} groups; vfio-pci {'loaded' if vfio else 'not loaded'}; "
        f"{', '.join(interfaces) or 'no /dev/vfio/vfio, no /dev/iommu'}"
    )
    if not groups:
        yield Finding(
            "IOMMU, VFIO",
            Level.NOTE,
            "no IOMMU groups",
            "a drive cannot be handed to user space; files work without",
            "switch the IOMMU on in the firmware (VT-d, AMD-Vi), and intel_iommu=on for the kernel",
            values=values,
        )
    elif not vfio or not interfaces:
        yield Finding(
            "IOMMU, VFIO",
            Level.NOTE,
            found,
            "the IOMMU is on, but VFIO is not ready; files work without",
            "modprobe vfio-pci",
            values=values,
        )
    else:
        yield Finding("IOMMU, VFIO", Level.OK, found, values=values)


def _controller(machine: Machine, controller: Path) -> Iterator[Finding]:
    name = controller.name
    device = controller / "device"
    link = read_link(machine, device)
    model = machine.text(controller / "model") or "unknown model"
    firmware = machine.text(controller / "firmware_rev") or "unknown"
    transport = machine.text(controller / "transport") or "unknown"
    state = machine.text(controller / "state") or "unknown"
    node = machine.number(device / "numa_node")
    values: dict[str, Any] = {
        "model": model,
        "firmware": firmware,
        "transport": transport,
        "state": state,
        "driver": machine.link(device / "driver"),
        "iommu_group": machine.link(device / "iommu_group"),
        "numa_node": node,
        "link": None if link is None else link.to_dict(),
    }
    found = f"{name}: {model}, firmware {firmware}, {transport}"
    found += f", {link}" if link is not None else ""
    found += f", NUMA node {node}" if node is not None and node >= 0 else ""
    if state != "live":
        yield Finding(
            "NVMe",
            Level.MISSING,
            f"{found}, state: {state}",
            "the kernel does not get on with this drive now",
            "dmesg says why",
            values=values,
        )
    elif link is not None and link.is_slowed:
        yield Finding(
            "NVMe",
            Level.NOTE,
            found,
            "the link is slower than the drive",
            "a slot of the drive's generation with all its lanes",
            values=values,
        )
    else:
        yield Finding("NVMe", Level.OK, found, values=values)
    # With multipath there are nvme0c0n1 for each path; nvme0n1 is what one opens.
    for namespace in machine.glob(f"/sys/class/nvme/{name}/{name}n*"):
        yield _namespace(machine, namespace)


def _namespace(machine: Machine, namespace: Path) -> Finding:
    name = namespace.name
    size = (machine.number(namespace / "size") or 0) * _SECTOR
    block = machine.number(namespace / "queue/logical_block_size")
    uses = _uses(machine, namespace)
    values = {
        "namespace": name,
        "nsid": machine.number(namespace / "nsid"),
        "bytes": size,
        "lba_bytes": block,
        "metadata_bytes": machine.number(namespace / "metadata_bytes"),
        "uses": uses,
    }
    found = f"{name}: {gib(size)}, blocks of {block or 'unknown'} bytes, {', '.join(uses) or 'not in use'}"
    if block is not None and block < 4096:
        return Finding(
            "namespace",
            Level.OK if uses else Level.NOTE,
            found,
            "" if uses else "blocks of 4096 bytes mean fewer commands where reads are large",
            "" if uses else f"nvme id-ns -H /dev/{name} lists its formats; changing it erases all",
            values=values,
        )
    return Finding("namespace", Level.OK, found, values=values)


def _uses(machine: Machine, namespace: Path) -> list[str]:
    """Why a drive must not be taken from the kernel: mounts, swap, and what is built on top."""
    parts = [namespace, *sorted(namespace.glob(f"{namespace.name}p*"))]
    mounted = {line.split()[2] for line in _lines(machine, "/proc/self/mountinfo") if len(line.split()) > 4}
    swapped = {line.split()[0] for line in _lines(machine, "/proc/swaps")[1:] if line.split()}
    uses = []
    if any(machine.text(part / "dev") in mounted for part in parts):
        uses.append("mounted")
    if any(f"/dev/{part.name}" in swapped for part in parts):
        uses.append("swap")
    if any(list(part.glob("holders/*")) for part in parts):
        uses.append("under LVM, RAID or encryption")
    return uses


def _not_the_kernels(machine: Machine) -> list[Finding]:
    found = []
    for device in machine.glob("/sys/bus/pci/devices/*"):
        driver = machine.link(device / "driver")
        if machine.text(device / "class") != _NVME_CLASS or driver == "nvme":
            continue
        values = {"address": device.name, "driver": driver}
        text = f"controller at {device.name}, driver: {driver or 'none'}"
        if driver == "vfio-pci":
            found.append(Finding("NVMe", Level.OK, f"{text} (handed to user space)", values=values))
        else:
            found.append(
                Finding(
                    "NVMe",
                    Level.NOTE,
                    text,
                    "the kernel does not use it",
                    "modprobe nvme, or bind it to vfio-pci",
                    values=values,
                )
            )
    return found


def _lines(machine: Machine, name: str) -> list[str]:
    return (machine.text(name) or "").splitlines()
