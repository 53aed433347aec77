"""All checks, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from bamquery.driver.doctor import disk, gpu, host, nvme, software
from bamquery.driver.doctor.finding import Finding, Level
from bamquery.driver.machine import Machine

Check = Callable[[Machine], Iterable[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    software.check_extension,
    software.check_packages,
    host.check_kernel,
    host.check_processors,
    host.check_memory,
    host.check_memlock,
    disk.check_file_system,
    disk.check_direct,
    disk.check_io_uring,
    nvme.check_drives,
    nvme.check_iommu,
    gpu.check_gpus,
    gpu.check_cuda,
    software.check_kernels,
)


def examine(machine: Machine, checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """What every check found. One that fails becomes a note: the doctor itself never does."""
    findings: list[Finding] = []
    for check in checks:
        try:
            # One at a time: what a check found before it failed stays.
            for finding in check(machine):
                findings.append(finding)
        except Exception as error:
            name = check.__name__.removeprefix("check_").replace("_", " ")
            findings.append(
                Finding(
                    name,
                    Level.NOTE,
                    f"could not be looked at: {type(error).__name__}: {error}",
                    "nothing is known of it",
                    "please report this line to the project",
                )
            )
    return findings


def fit(findings: Iterable[Finding]) -> bool:
    """Whether BamQuery can run at all."""
    return not any(finding.needed and finding.level is Level.MISSING for finding in findings)
