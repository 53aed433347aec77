import json
from pathlib import Path

from bamquery.driver.doctor.examine import examine
from bamquery.driver.doctor.finding import Level
from bamquery.driver.doctor.nvme import check_drives, check_iommu
from tests.unit.driver.doctor.fake_machine import NVME, make


def test_a_drive(tmp_path: Path) -> None:
    drive, namespace = check_drives(make(tmp_path))
    assert drive.level is Level.OK
    assert drive.found == (
        "nvme0: INTEL SSDPED1D480GA, firmware E2010480, pcie, 8 GT/s x4, 3.9 GB/s, NUMA node 0"
    )
    assert (drive.values["driver"], drive.values["iommu_group"]) == ("nvme", "7")
    assert namespace.found == "nvme0n1: 447.1 GiB, blocks of 512 bytes, nvme0n1p1 is mounted at /data disk"
    assert namespace.values["nsid"] == 1


def test_uses_that_forbid_taking_a_drive(tmp_path: Path) -> None:
    nothing = {"proc/self/mountinfo": "22 1 8:2 / / rw - ext4 /dev/sda2 rw"}
    _, free = check_drives(make(tmp_path / "free", nothing))
    assert free.values["uses"] == []
    assert "4096" in free.meaning
    swap = {"proc/swaps": "Filename Type\n/dev/nvme0n1p1 partition 5"}
    raid = {"sys/class/nvme/nvme0/nvme0n1/nvme0n1p1/holders/md0/md/level": "raid1"}
    _, used = check_drives(make(tmp_path / "used", nothing | swap | raid))
    said = [use["text"] for use in used.values["uses"]]
    assert said == ["nvme0n1p1 is swapped on", "nvme0n1p1 is under md0 (raid1)"]


def test_a_drive_in_trouble(tmp_path: Path) -> None:
    dead = make(tmp_path / "dead", {"sys/class/nvme/nvme0/state": "resetting"})
    assert next(iter(check_drives(dead))).level is Level.MISSING
    slow = make(tmp_path / "slow", {f"{NVME}/current_link_width": "1"})
    drive = next(iter(check_drives(slow)))
    assert drive.level is Level.NOTE
    assert "slower than the drive" in drive.meaning


def test_drives_of_somebody_else(tmp_path: Path) -> None:
    vfio = {f"{NVME}/driver": "sys/bus/pci/drivers/vfio-pci"}
    (finding,) = check_drives(make(tmp_path / "lent", links=vfio, without=("sys/class/nvme",)))
    assert finding.level is Level.OK
    assert "handed to user space" in finding.found
    (finding,) = check_drives(make(tmp_path / "idle", without=("sys/class/nvme", f"{NVME}/driver")))
    assert finding.level is Level.NOTE
    assert "driver: none" in finding.found
    assert "bamquery nvme bind 0000:01:00.0" in finding.advice


def test_no_drive(tmp_path: Path) -> None:
    (finding,) = check_drives(make(tmp_path, without=("sys/class/nvme", f"{NVME}/class")))
    assert finding.found == "no NVMe controller"


def test_iommu(tmp_path: Path) -> None:
    (ready,) = check_iommu(make(tmp_path / "ready"))
    assert ready.level is Level.OK
    no_groups = ("sys/kernel/iommu_groups", f"{NVME}/iommu_group")
    (off,) = check_iommu(make(tmp_path / "off", without=no_groups))
    assert off.level is Level.NOTE
    assert "firmware" in off.advice
    (unloaded,) = check_iommu(make(tmp_path / "unloaded", without=("sys/bus/pci/drivers/vfio-pci",)))
    assert unloaded.advice.startswith("modprobe vfio-pci")


def test_nothing_private_is_told(tmp_path: Path) -> None:
    report = json.dumps([finding.to_dict() for finding in examine(make(tmp_path))])
    assert "SSDPED1D480GA" in report
    assert "SECRET" not in report.upper()
