"""A made-up machine whose kernel hears writes: drivers let go of devices and take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bamquery.driver.machine import Machine
from bamquery.driver.nvme.sysfs import Sysfs
from tests.unit.driver.doctor.fake_machine import NVME, make

ADDRESS = "0000:01:00.0"
BUS = "sys/bus/pci/devices"
NOT_MOUNTED = {"proc/self/mountinfo": "22 1 8:2 / / rw - ext4 /dev/sda2 rw"}
IDLE = {
    **NOT_MOUNTED,
    f"{NVME}/driver_override": "(null)",
    f"{NVME}/device": "0x2701",
    "dev/vfio/7": "",
}
"""A drive that nothing uses, with what `bind` needs of it."""
SECOND = "sys/devices/pci0000:00/0000:02:00.0"
SECOND_FILES = {
    f"{SECOND}/vendor": "0x144d",
    f"{SECOND}/device": "0xa80a",
    f"{SECOND}/class": "0x010802",
    f"{SECOND}/driver_override": "(null)",
}


def idle(
    root: Path,
    changes: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    without: tuple[str, ...] = (),
) -> Machine:
    """A server whose drive is not in use."""
    groups = {f"sys/kernel/iommu_groups/7/devices/{ADDRESS}": NVME}
    return make(root, IDLE | dict(changes or {}), groups | dict(links or {}), without)


def beside(address: str, folder: str, driver: str | None) -> dict[str, str]:
    """Links of another device of the drive's group."""
    links = {
        f"{BUS}/{address}": folder,
        f"sys/kernel/iommu_groups/7/devices/{address}": folder,
        f"{folder}/iommu_group": "sys/kernel/iommu_groups/7",
    }
    return links | ({f"{folder}/driver": f"sys/bus/pci/drivers/{driver}"} if driver else {})


@dataclass(frozen=True)
class FakeKernel(Sysfs):
    """Does what is written.

    Attributes:
        fails: by a part of a written file's name, what happens instead; each entry is used once.
        refuses: drivers that take no device.
        log: all that was written.
    """

    fails: dict[str, BaseException] = field(default_factory=dict)
    refuses: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def write(self, name: str, text: str, deadline: float = 1.0) -> None:
        self.log.append(f"{text.strip()} > {name}")
        for part in self.fails:
            if part in name:
                raise self.fails.pop(part)
        path = self.machine.path(name)
        if name.endswith("/driver_override"):
            path.write_text(text)
        elif name.endswith("/driver/unbind"):
            path.parent.unlink()
        elif name.endswith("/drivers_probe"):
            self._probe(self.machine.path(f"/{BUS}/{text}"))
        else:
            raise AssertionError(name)

    def load_module(self, name: str, deadline: float = 1.0) -> None:
        self.log.append(f"modprobe {name}")
        for part in self.fails:
            if part == f"modprobe {name}":
                raise self.fails.pop(part)
        self.machine.path(f"/sys/bus/pci/drivers/{name}").mkdir(parents=True)

    def _probe(self, device: Path) -> None:
        wanted = (device / "driver_override").read_text().strip()
        driver = "nvme" if wanted in ("", "(null)") else wanted
        folder = self.machine.path(f"/sys/bus/pci/drivers/{driver}")
        if not (device / "driver").exists() and folder.exists() and driver not in self.refuses:
            (device / "driver").symlink_to(folder)


def driver_of(machine: Machine, address: str = ADDRESS) -> str | None:
    return machine.link(machine.path(f"/{BUS}/{address}/driver"))


def override_of(machine: Machine, address: str = ADDRESS) -> str:
    return (machine.text(f"/{BUS}/{address}/driver_override") or "").strip()
