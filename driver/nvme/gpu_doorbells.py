"""How a drive hears of commands that a GPU writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bamquery.driver.machine import Machine
from bamquery.driver.nvme.iommu import group_type


@dataclass(frozen=True)
class GpuDoorbells:
    """For `NvmeController`.

    Attributes:
        kind: `registers`, which the GPU writes to, or `forwarded`: a thread of this process does.
        reason: in words.
    """

    kind: Literal["registers", "forwarded"]
    reason: str


def gpu_doorbells(gpu: str, machine: Machine | None = None) -> GpuDoorbells:
    """What a GPU can do, by its IOMMU domain: its stores to another device's registers pass it.

    In a domain that translates, the registers' addresses mean nothing, or something else. Nobody has tried
    either on hardware.

    Args:
        gpu: its address on the PCI bus, with the domain.
        machine: this one if None.
    """
    machine = machine or Machine()
    device = machine.path(f"/sys/bus/pci/devices/{gpu.lower()}")
    if not device.exists():
        return GpuDoorbells("forwarded", f"nothing is known of the IOMMU domain of {gpu} here")
    group = machine.link(device / "iommu_group")
    if group is None:
        return GpuDoorbells("registers", "no IOMMU translates what it stores")
    kind = group_type(machine, group)
    if kind == "identity":
        return GpuDoorbells("registers", "its IOMMU domain is identity")
    return GpuDoorbells(
        "forwarded",
        f"its IOMMU domain is {kind or 'unknown'}, not identity (which iommu=pt makes it)",
    )
