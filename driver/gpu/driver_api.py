"""CUDA's driver interface, with errors that say what was tried and what to do."""

from __future__ import annotations

import importlib
from typing import Any, Final

from bamquery.driver.compile.toolchain import INSTALL
from bamquery.errors import GpuError

_NEEDED_CUDA: Final = 13000
_GET_DRIVER: Final = "install NVIDIA's driver 580 or newer, or use the CPU"


class Cuda:
    """Calls of `cuda.bindings.driver` that raise instead of returning a status."""

    def __init__(self, api: Any) -> None:
        """Take the module."""
        self.api = api

    def __call__(self, action: str, function: str, *arguments: Any) -> Any:
        """As `call`, which a trace may stand in for."""
        return self.call(action, function, *arguments)

    def call(self, action: str, function: str, *arguments: Any) -> Any:
        """Call; returns what comes after the status: nothing, a value, or several.

        Raises:
            GpuError: `action`, which names what was tried, failed.
        """
        status, *values = getattr(self.api, function)(*arguments)
        if int(status):
            raise GpuError(f"cannot {action}: {self.explain(status)}")
        if not values:
            return None
        return values[0] if len(values) == 1 else tuple(values)

    def quietly(self, function: str, *arguments: Any) -> None:
        """Call on the way out, where an error has been raised already or nobody could act on it."""
        getattr(self.api, function)(*arguments)

    def explain(self, status: Any) -> str:
        """An error's name and what CUDA says of it."""
        _, name = self.api.cuGetErrorName(status)
        _, text = self.api.cuGetErrorString(status)
        parts = [part.decode() if isinstance(part, bytes) else str(part) for part in (name, text)]
        return f"{parts[0]} ({parts[1]})"


def open_driver(ordinal: int) -> Cuda:
    """CUDA, ready for GPU number `ordinal`.

    Raises:
        GpuError: what is missing on the way there, and how to get it.
    """
    try:
        api = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise GpuError(f"cuda-bindings cannot be imported ({error}): {INSTALL}") from error
    cuda = Cuda(api)
    try:
        (status,) = api.cuInit(0)
    except (RuntimeError, OSError) as error:
        raise GpuError(f"NVIDIA's driver is not installed (no libcuda.so.1): {_GET_DRIVER}") from error
    if status == api.CUresult.CUDA_ERROR_NO_DEVICE:
        raise GpuError("CUDA shows no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the CPU")
    if int(status):
        # Asking for the error's text is no good: it needs the driver that has just failed.
        raise GpuError(
            f"CUDA cannot be initialised: {status.name}: check nvidia-smi and /dev/nvidia*, {_GET_DRIVER}"
        )
    version = cuda("ask for the driver's version", "cuDriverGetVersion")
    if version < _NEEDED_CUDA:
        found = f"{version // 1000}.{version % 1000 // 10}"
        raise GpuError(f"NVIDIA's driver is for CUDA {found}, kernels need 13.0: {_GET_DRIVER}")
    count = cuda("count the GPUs", "cuDeviceGetCount")
    if not 0 <= ordinal < count:
        raise GpuError(f"there is no cuda:{ordinal}: CUDA shows {count} GPUs, from cuda:0 on")
    return cuda
