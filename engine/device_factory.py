"""The device that a setting names."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Final

from bamquery.driver.compile.toolchain import INSTALL
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.errors import GpuError, SettingError

_NEEDED: Final = ("rmm", "pylibcudf")


def open_device(
    name: str, gpu_memory_limit: int | None = None, *, programs: bool = True
) -> tuple[Device[Any], tuple[str, ...]]:
    """The device for `auto`, `cpu` or `cuda:<n>`, and what its profile should say of the choice.

    `auto` is the first GPU where there is one that libcudf runs on, else the CPU.

    Args:
        name: as the setting `device` has it.
        gpu_memory_limit: bytes, as the setting of that name has them.
        programs: whether it computes by programs, as the setting of that name says.

    Raises:
        SettingError: there is no such device; says what is missing.
    """
    if name == "cpu":
        return CpuDevice(programs=programs), ()
    if name == "auto":
        missing = _missing_for_gpu()
        if missing is not None:
            return CpuDevice(programs=programs), (f"device auto: cpu, because {missing}",)
        return _cuda_device(0, gpu_memory_limit, programs=programs), ("device auto: cuda:0, the first GPU",)
    try:
        ordinal = int(name.removeprefix("cuda:"))
        return _cuda_device(ordinal, gpu_memory_limit, programs=programs), ()
    except GpuError as error:
        raise SettingError(
            f"there is no device {name}: {error}. Leave device at auto, or set it to cpu"
        ) from error


@functools.cache
def _missing_for_gpu() -> str | None:
    """Why `auto` is not a GPU; looked for once a process."""
    try:
        _cuda_device(0, None, programs=True)
    except GpuError as error:
        return str(error)
    return None


def _cuda_device(ordinal: int, gpu_memory_limit: int | None, *, programs: bool) -> Device[Any]:
    """The device of a GPU.

    Raises:
        GpuError: libcudf or the GPU is not there.
    """
    for module in _NEEDED:
        try:
            importlib.import_module(module)
        except (ImportError, OSError, RuntimeError) as error:
            raise GpuError(f"{module} cannot be imported ({error}): {INSTALL}") from error
    # Only now: these modules import libcudf at their top.
    module_of_device = importlib.import_module("bamquery.engine.cuda.device")
    found: Device[Any] = module_of_device.open_cuda_device(ordinal, gpu_memory_limit, programs=programs)
    return found
