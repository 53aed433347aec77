"""The extension module, Python packages, and what compiling kernels needs."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from bamquery.driver.compile import toolchain
from bamquery.driver.compile.kernel_cache import default_folder
from bamquery.driver.doctor.finding import Finding, Level
from bamquery.driver.machine import Machine
from bamquery.errors import GpuError

_NEEDED: Final = ("bamquery", "flatbuffers", "numpy", "pyarrow", "rich", "sqlglot")
_USEFUL: Final = {
    "GPU": ("cuda-core", "nvidia-cuda-nvrtc", "nvidia-cuda-cccl"),
    "queries on a GPU": ("cudf-cu13", "pylibcudf-cu13", "rmm-cu13"),
    "arrays in Python kernels": ("numba", "numba-cuda"),
    "comparisons and pictures": ("duckdb", "polars", "matplotlib"),
}
_MISSED: Final = {
    "GPU": "no kernels on a GPU without; nothing to do for the CPU",
    "queries on a GPU": "queries run on the CPU, to_cudf() is refused",
}
"""What follows where packages for a purpose are missing."""


def check_extension(_machine: Machine) -> Iterator[Finding]:
    """The native part: without it nothing works."""
    try:
        native = importlib.import_module("bamquery._native")
    except ImportError as error:
        yield Finding(
            "extension",
            Level.MISSING,
            f"bamquery._native cannot be loaded: {error}",
            "nothing works without it",
            "install the wheel for this Python and machine, or `make build` in a checkout",
            needed=True,
        )
        return
    name = Path(native.__file__ or "").name
    yield Finding("extension", Level.OK, f"{name}, Python {platform.python_version()}", values={"file": name})


def check_packages(_machine: Machine) -> Iterator[Finding]:
    """Which packages are installed, and which are not."""
    needed = {name: _version(name) for name in _NEEDED}
    absent = [name for name, version in needed.items() if version is None]
    found = ", ".join(f"{name} {version}" for name, version in needed.items() if version)
    if absent:
        yield Finding(
            "packages",
            Level.MISSING,
            f"not installed: {', '.join(absent)}",
            "BamQuery cannot run without",
            f"pip install {' '.join(absent)}",
            needed=True,
            values=dict(needed),
        )
    else:
        yield Finding("packages", Level.OK, found, values=dict(needed))
    for purpose, names in _USEFUL.items():
        versions = {name: _version(name) for name in names}
        absent = [name for name, version in versions.items() if version is None]
        found = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        if absent:
            yield Finding(
                f"packages for {purpose}",
                Level.NOTE,
                f"not installed: {', '.join(absent)}" + (f"; {found}" if found else ""),
                _MISSED.get(purpose, f"needed for {purpose} only"),
                toolchain.INSTALL if "GPU" in purpose else f"pip install {' '.join(absent)}",
                values=dict(versions),
            )
        else:
            yield Finding(f"packages for {purpose}", Level.OK, found, values=dict(versions))


def check_kernels(_machine: Machine) -> Iterator[Finding]:
    """Whether kernels can be compiled here, and kept."""
    try:
        nvrtc, cccl = toolchain.nvrtc_version(), toolchain.cccl_version()
    except GpuError as error:
        yield Finding(
            "kernels",
            Level.MISSING,
            f"cannot be compiled: {error}",
            "queries run on the CPU; nothing else needs it",
            toolchain.INSTALL,
        )
    else:
        values = {"nvrtc": nvrtc, "cccl": cccl}
        yield Finding("kernels", Level.OK, f"NVRTC {nvrtc}, CCCL {cccl}", values=values)
    folder = default_folder()
    if folder is not None and os.access(_existing_folder(folder), os.W_OK | os.X_OK):
        yield Finding("kernel cache", Level.OK, f"{_abbreviate_home(folder)} can be written")
    else:
        found = (
            "there is no home folder" if folder is None else f"{_abbreviate_home(folder)} cannot be written"
        )
        yield Finding(
            "kernel cache",
            Level.NOTE,
            found,
            "kernels are compiled again by every process, seconds each",
            "name a folder that can be written with XDG_CACHE_HOME",
        )


def _existing_folder(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _abbreviate_home(folder: Path) -> str:
    home = Path(os.path.expanduser("~"))
    return str(Path("~") / folder.relative_to(home)) if folder.is_relative_to(home) else str(folder)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
