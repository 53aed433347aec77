"""What compiling kernels needs: NVIDIA's Python modules, NVRTC, and the headers of CCCL and of our own."""

from __future__ import annotations

import functools
import importlib
import os
import re
import shutil
from pathlib import Path
from typing import Any, Final

from bamquery.errors import GpuError

PACKAGE: Final = Path(__file__).parents[2]
"""What headers are named from: `driver/core/platform.hpp`."""
KERNELS: Final = PACKAGE / "driver" / "kernels"
"""Kernels, one file each."""
INSTALL: Final = "pip install 'bamquery[cu13]'"
_USUAL_TOOLKIT: Final = Path("/usr/local/cuda")
_PROBE: Final = Path("cuda", "std", "__cccl", "version.h")


def cuda_module(name: str) -> Any:
    """A module of cuda-core, cuda-bindings or numba-cuda, imported now: none is needed on a CPU.

    Raises:
        GpuError: it is not installed; says how to get it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise GpuError(f"{name} cannot be imported ({error}): {INSTALL}") from error


@functools.cache
def cccl_folder() -> Path:
    """Where `cuda/atomic` and the rest of CCCL are: its wheel, else a CUDA toolkit.

    Raises:
        GpuError: neither is there.
    """
    for folder in _cccl_candidates():
        if (folder / _PROBE).is_file():
            return folder.resolve()
    raise GpuError(
        "the headers of CCCL are neither installed (nvidia-cuda-cccl) nor in a CUDA toolkit "
        f"(CUDA_PATH, CUDA_HOME, nvcc on the PATH, {_USUAL_TOOLKIT}): {INSTALL}"
    )


def include_folders() -> tuple[Path, ...]:
    """What kernels are compiled with, and what others need who include our headers."""
    return (PACKAGE, cccl_folder())


@functools.cache
def cccl_version() -> str:
    """As CCCL_VERSION has it: 3005000 is 3.5.0."""
    found = re.search(r"#\s*define\s+CCCL_VERSION\s+(\d+)", (cccl_folder() / _PROBE).read_text())
    return found.group(1) if found else "unknown"


@functools.cache
def nvrtc_version() -> str:
    """Of the NVRTC that compiles, such as 13.0.

    Raises:
        GpuError: there is none.
    """
    nvrtc = cuda_module("cuda.bindings.nvrtc")
    try:
        status, major, minor = nvrtc.nvrtcVersion()
    except (RuntimeError, OSError) as error:  # cuda.pathfinder's DynamicLibNotFoundError is a RuntimeError
        raise GpuError(f"NVRTC, which compiles kernels, cannot be loaded ({error}): {INSTALL}") from error
    if int(status):
        raise GpuError(f"NVRTC does not tell its version: {status.name}")
    return f"{major}.{minor}"


def _cccl_candidates() -> list[Path]:
    candidates: list[Path] = []
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        found = pathfinder.find_nvidia_header_directory("cccl")
    except (ImportError, AttributeError, RuntimeError):  # AttributeError: an old cuda-pathfinder
        found = None
    if found is not None:
        candidates.append(Path(found))
    roots = [Path(os.environ[name]) for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    compiler = shutil.which("nvcc")
    if compiler is not None:
        roots.append(Path(compiler).resolve().parents[1])
    roots.append(_USUAL_TOOLKIT)
    for root in roots:
        # From CUDA 13 on CCCL has a folder of its own; before, it lay among the toolkit's headers.
        candidates += [root / "include" / "cccl", root / "include"]
        candidates += sorted(root.glob("targets/*/include/cccl"))
    return candidates
