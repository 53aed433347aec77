"""What a measurement ran on, for whoever reads it later."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from bamquery.driver.doctor.gpu import check_cuda, check_gpus
from bamquery.driver.machine import Machine

# As people call them, and the distributions that may have them.
_LIBRARIES = {
    **{name: (name,) for name in ("bamquery", "duckdb", "numpy", "polars", "pyarrow")},
    "cudf": ("cudf-cu13",),
    "pylibcudf": ("pylibcudf-cu13",),
    "rmm": ("rmm-cu13",),
    "cupy": ("cupy-cuda13x", "cupy"),
    "cuda-core": ("cuda-core",),
    "vortex": ("vortex-data",),
    "lance": ("pylance",),
    "chdb": ("chdb",),
    "chdb-core": ("chdb-core",),
}


def describe_machine(folder: Path) -> dict[str, object]:
    """Processor, memory, system, library versions, GPUs, and the file system that holds `folder`."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "libraries": _versions(),
        "gpus": _gpus(),
        "file_system": _file_system(folder),
    }


def machine_line(folder: Path) -> str:
    """The same in one line."""
    machine = describe_machine(folder)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{machine['processor']}, {machine['cores']} cores, {memory:.0f} GiB, {machine['file_system']}"


def device_line(device: str) -> str:
    """A device as plans name it, and of a GPU what CUDA calls it: `cuda:0 (NVIDIA H200)`."""
    names = [str(found["name"]) for found in _gpus() if found.get("device") == device]
    return f"{device} ({names[0]})" if names else device


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for library, distributions in _LIBRARIES.items():
        for distribution in distributions:
            with suppress(metadata.PackageNotFoundError):
                found[library] = metadata.version(distribution)
                break
    return found


def _gpus() -> list[dict[str, object]]:
    """What doctor finds: models, links, driver, and what CUDA says; empty where there is none."""
    machine = Machine()
    findings = [*check_gpus(machine), *check_cuda(machine)]
    return [{"check": finding.check, **finding.values} for finding in findings if finding.values]


def _file_system(folder: Path) -> str:
    """Type of the file system under a folder: the mount point that is the longest start of its path."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    path = folder.resolve()
    best, kind = "", "unknown"
    for line in mounts:
        _, point, type_, *_ = line.split()
        point = point.replace("\\040", " ")
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, type_
    return kind
