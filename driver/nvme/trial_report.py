"""What `bamquery nvme test` says: for people, and as a file that they can send."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from bamquery import __version__
from bamquery.driver.doctor.pcie import read_link
from bamquery.driver.machine import Machine, gib
from bamquery.driver.nvme.drive import DriveNamespace, NvmeDrive
from bamquery.driver.nvme.drives import Drive
from bamquery.driver.nvme.iommu import find_iommu
from bamquery.driver.nvme.rates import rate_line
from bamquery.driver.nvme.trial import Findings


def describe(machine: Machine, place: Drive, drive: NvmeDrive) -> dict[str, Any]:
    """The drive and what is around it: versions, IOMMU, link; no serial number, no name of the machine."""
    link = read_link(machine, machine.path(f"/sys/bus/pci/devices/{place.address}"))
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "bamquery": __version__,
            "kernel": machine.text("/proc/sys/kernel/osrelease"),
            "machine": platform.machine(),
            "python": platform.python_version(),
        },
        "iommu": find_iommu(machine).to_dict()
        | {
            "group_members": [str(member) for member in place.members],
            "group_type": place.group_type,
        },
        "vfio_interface": drive.interface,
        "drive": {
            "address": place.address,
            "ids": place.ids,
            "link": None if link is None else link.to_dict(),
            **drive.identity(),
        },
        "limits": asdict(drive.limits),
        "namespaces": [asdict(namespace) for namespace in drive.namespaces()],
    }


def describe_lines(drive: NvmeDrive) -> Iterator[str]:
    """The same for people, in short."""
    identity, limits = drive.identity(), drive.limits
    yield f"{drive.address}: {identity['model']}, firmware {identity['firmware']}, NVMe {identity['version']}"
    yield f"reached by {drive.interface}, for reading only"
    yield (
        f"{limits.queue_pairs} queue pairs of up to {limits.queue_depth} entries; "
        f"{limits.transfer_bytes >> 10} KiB a command; doorbell stride {limits.doorbell_stride}; "
        f"shadow doorbells: {_yes(limits.shadow_doorbells)}; memory buffer: {_yes(limits.memory_buffer)}"
    )
    for namespace in drive.namespaces():
        yield _namespace_line(namespace)


def findings_lines(findings: Findings) -> Iterator[str]:
    """What was found, for people."""
    if findings.doorbells:
        yield f"doorbells: {findings.doorbells}"
    if (comparison := findings.comparison) is not None:
        first, second = findings.ways
        how = (
            f"by {first.pairs} and by {second.pairs} queue pairs, in commands of up to "
            f"{first.transfer_bytes} and {second.transfer_bytes} bytes"
        )
        verdict = f"{comparison.different:,} DIFFER" if comparison.different else "all the same"
        yield f"{comparison.blocks:,} blocks read twice, {how}: {verdict}"
        for lba, before, after in comparison.first_different:
            yield f"    LBA {lba}: checksums {before:08x} and {after:08x}"
    for refusal in findings.refusals:
        otherwise = "ANOTHER STATUS" if refusal.refused else "NOT REFUSED"
        yield f"{refusal.asked}: {'as it must' if refusal.as_expected else otherwise}: {refusal.answer}"
    for figures in findings.rates:
        yield rate_line(figures)
        yield from (f"    {note}" for note in figures.notes)
    if findings.error:
        yield f"the test ended before its end: {findings.error}"


def _namespace_line(namespace: DriveNamespace) -> str:
    size = gib(namespace.blocks * namespace.block_bytes)
    cache = "a volatile write cache" if namespace.volatile_cache else "no volatile write cache"
    state = f"not taken: {namespace.refusal}" if namespace.refusal else cache
    return f"namespace {namespace.nsid}: {size}, blocks of {namespace.block_bytes} bytes; {state}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
