"""Which device a setting names, and what is said where it is not there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from bamquery.engine import device_factory as devices
from bamquery.errors import GpuError, SettingError

MODULE = "bamquery.engine.cuda.device"


class FakeCuda:
    def __init__(self, ordinal: int, limit: int | None, *, programs: bool) -> None:
        self.name, self.limit, self.programs = f"cuda:{ordinal}", limit, programs


@pytest.fixture(autouse=True)
def _looked_for_anew() -> Iterator[None]:
    devices._missing_for_gpu.cache_clear()
    yield
    devices._missing_for_gpu.cache_clear()


@pytest.fixture
def libcudf(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """As if libcudf were there, and a GPU."""
    for name in ("rmm", "pylibcudf"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    module: Any = ModuleType(MODULE)
    module.open_cuda_device = FakeCuda
    monkeypatch.setitem(sys.modules, MODULE, module)
    return module


def _without(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]


def test_the_cpu_is_always_there() -> None:
    device, notes = devices.open_device("cpu")
    assert (device.name, notes) == ("cpu", ())


def test_auto_without_libcudf_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "rmm")
    device, notes = devices.open_device("auto")
    assert device.name == "cpu"
    (note,) = notes
    assert note.startswith("device auto: cpu, because rmm cannot be imported")
    assert "pip install 'bamquery[cu13]'" in note


def test_a_gpu_by_name_without_libcudf_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "rmm")
    with pytest.raises(SettingError, match=r"no device cuda:1: rmm .*bamquery\[cu13\].* set it to cpu"):
        devices.open_device("cuda:1")


def test_auto_takes_the_first_gpu(libcudf: ModuleType) -> None:
    device, notes = devices.open_device("auto", 1 << 30)
    assert isinstance(device, FakeCuda)
    assert (device.name, device.limit) == ("cuda:0", 1 << 30)
    assert notes == ("device auto: cuda:0, the first GPU",)


def test_a_gpu_by_name(libcudf: ModuleType) -> None:
    device, notes = devices.open_device("cuda:3")
    assert (device.name, notes) == ("cuda:3", ())


def test_libcudf_without_a_gpu(libcudf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def no_gpu(ordinal: int, limit: int | None, *, programs: bool) -> FakeCuda:
        asked.append(ordinal)
        raise GpuError("NVIDIA's driver is not installed (no libcuda.so.1): use the CPU")

    monkeypatch.setattr(libcudf, "open_cuda_device", no_gpu)
    for _ in range(2):
        device, notes = devices.open_device("auto")
        assert device.name == "cpu"
        assert "NVIDIA's driver is not installed" in notes[0]
    assert asked == [0]  # looked for once a process
    with pytest.raises(SettingError, match="no device cuda:0: NVIDIA's driver"):
        devices.open_device("cuda:0")
