"""The device that a setting names."""

from __future__ import annotations

from typing import Any

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.errors import SettingError


def open_device(name: str) -> tuple[Device[Any], tuple[str, ...]]:
    """The device for `auto`, `cpu` or `cuda:<n>`, and what its profile should say of the choice.

    Raises:
        SettingError: there is no such device.
    """
    if name == "cpu":
        return CpuDevice(), ()
    if name == "auto":
        return CpuDevice(), ("device auto: cpu, because this version of BamQuery has no GPU device",)
    raise SettingError(
        f"there is no device {name}: this version of BamQuery runs on the CPU only. "
        "Leave device at auto, or set it to cpu"
    )
