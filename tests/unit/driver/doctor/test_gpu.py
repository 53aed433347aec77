import importlib
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bamquery.driver.doctor.finding import Level
from bamquery.driver.doctor.gpu import check_cuda, check_gpus
from bamquery.driver.machine import Machine
from tests.unit.driver.doctor.fake_machine import GPU, SERVER, make


def test_a_gpu(tmp_path: Path) -> None:
    device, link, driver = check_gpus(make(tmp_path))
    assert {finding.level for finding in (device, link, driver)} == {Level.OK}
    assert device.found == (
        "NVIDIA H200 at 0000:41:00.0; drives' doorbells: registers, since no IOMMU translates what it stores"
    )
    assert device.values["doorbells"] == "registers"
    assert device.values["numa_node"] == 1
    assert link.found == "32 GT/s x16, 63.0 GB/s"
    assert driver.found == "580.82.07, open kernel modules"


def test_no_gpu(tmp_path: Path) -> None:
    machine = make(tmp_path, {f"{GPU}/vendor": "0x1002"}, without=("proc/driver",))
    (finding,) = check_gpus(machine)
    assert finding.level is Level.MISSING
    assert not finding.needed
    assert list(check_cuda(Machine(root=tmp_path))) == []


def test_gpus_that_cuda_cannot_use(tmp_path: Path) -> None:
    bare = make(tmp_path / "bare", without=("proc/driver", f"{GPU}/driver"))
    lent = make(
        tmp_path / "lent", links={f"{GPU}/driver": "sys/bus/pci/drivers/vfio-pci"}, without=("proc/driver",)
    )
    for machine, advice in ((bare, "install NVIDIA's driver"), (lent, "unbind it from vfio-pci")):
        device, _link = check_gpus(machine)
        assert device.level is Level.MISSING
        assert advice in device.advice


def test_slow_links(tmp_path: Path) -> None:
    idle = make(tmp_path / "idle", {f"{GPU}/current_link_speed": "2.5 GT/s PCIe"})
    narrow = make(tmp_path / "narrow", {f"{GPU}/current_link_width": "4"})
    for machine, meaning in ((idle, "an idle GPU"), (narrow, "fewer lanes")):
        _, link, _ = check_gpus(machine)
        assert link.level is Level.NOTE
        assert link.meaning.startswith(meaning)


def test_an_old_driver(tmp_path: Path) -> None:
    version = SERVER["proc/driver/nvidia/version"].replace("580.82.07", "535.161.08")
    *_, driver = check_gpus(make(tmp_path, {"proc/driver/nvidia/version": version}))
    assert driver.level is Level.MISSING
    assert "580 or newer" in driver.advice


class Attribute(Enum):
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 9
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 0
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 132
    CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 1


class Status(int):
    name = "CUDA_ERROR_NO_DEVICE"


def fake_cuda(status: int, devices: int, attributes: Any = Attribute) -> SimpleNamespace:
    return SimpleNamespace(
        cuInit=lambda _: (Status(status),),
        cuDeviceGetCount=lambda: (0, devices),
        cuDeviceGet=lambda number: (0, number),
        cuDeviceGetName=lambda size, _: (0, b"NVIDIA H200".ljust(size, b"\0")),
        cuDeviceTotalMem=lambda _: (0, 139 << 30),
        cuDeviceGetAttribute=lambda key, _: (0, key.value),
        CUdevice_attribute=attributes,
    )


class WithDriver(Machine):
    def exists(self, name: str) -> bool:
        return name == "/proc/driver/nvidia/version" or super().exists(name)


@pytest.mark.parametrize(
    ("cuda", "level", "text"),
    [
        (fake_cuda(0, 1), Level.OK, "cuda:0: NVIDIA H200, 139.0 GiB, compute capability 9.0"),
        (fake_cuda(0, 0), Level.MISSING, "no device visible"),
        (fake_cuda(100, 0), Level.MISSING, "cuInit says CUDA_ERROR_NO_DEVICE"),
    ],
)
def test_what_cuda_says(
    monkeypatch: pytest.MonkeyPatch, cuda: SimpleNamespace, level: Level, text: str
) -> None:
    monkeypatch.setattr(importlib, "import_module", lambda _: cuda)
    (finding,) = check_cuda(WithDriver())
    assert finding.level is level
    assert finding.found == text


def test_a_gpu_without_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    (finding,) = check_cuda(WithDriver())
    assert finding.level is Level.MISSING
    assert "pip install" in finding.advice
