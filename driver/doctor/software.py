"""The extension module, Python packages, and what compiling kernels needs."""

from __future__ import annotations

import importlib
import importlib.util
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from bamquery.driver.doctor.machine import Finding, Level, Machine

_NEEDED: Final = ("bamquery", "flatbuffers", "numpy", "pyarrow", "rich", "sqlglot")
_USEFUL: Final = {
    "GPU": ("cuda-core", "nvidia-cuda-nvrtc", "nvidia-cuda-cccl"),
    "GPU frames": ("cudf-cu13", "pylibcudf-cu13"),
    "arrays in Python kernels": ("numba", "numba-cuda"),
    "comparisons and pictures": ("duckdb", "polars", "matplotlib"),
}


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
                f"no {purpose} without" if "GPU" in purpose else f"needed for {purpose} only",
                f"pip install {' '.join(absent)}",
                values=dict(versions),
            )
        else:
            yield Finding(f"packages for {purpose}", Level.OK, found, values=dict(versions))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
