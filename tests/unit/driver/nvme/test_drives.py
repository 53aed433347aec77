"""Which drives there are, what uses them, and what is said of them."""

import errno
import json
from pathlib import Path

import pytest

from bamquery.driver.machine import Machine
from bamquery.driver.nvme import uses
from bamquery.driver.nvme.drives import find_drive, find_drives
from bamquery.driver.nvme.listing import list_as_dict, list_as_lines
from bamquery.driver.nvme.uses import UseKind
from bamquery.errors import BamQueryError
from tests.unit.driver.doctor.fake_machine import NVME, make
from tests.unit.driver.nvme.fake_kernel import ADDRESS, BUS, NOT_MOUNTED, beside, idle

DISK = "sys/class/nvme/nvme0/nvme0n1"
PART = f"{DISK}/nvme0n1p1"


def said(machine: Machine) -> list[str]:
    return [str(use) for use in find_drive(machine, ADDRESS).uses]


def mounted(*lines: str) -> dict[str, str]:
    return {"proc/self/mountinfo": "\n".join(lines)}


def test_an_idle_drive(tmp_path: Path) -> None:
    (drive,) = find_drives(idle(tmp_path))
    assert (drive.address, drive.ids, drive.driver, drive.controller) == (
        ADDRESS,
        "8086:2701",
        "nvme",
        "nvme0",
    )
    assert (drive.group, drive.group_type, drive.members, drive.uses) == ("7", "DMA-FQ", (), ())
    (namespace,) = drive.namespaces
    assert (namespace.nsid, namespace.bytes, namespace.block_bytes) == (1, 937703088 * 512, 512)
    lines = list(list_as_lines(idle(tmp_path / "again")))
    assert lines == [
        "IOMMU on (1 units, 1 groups); vfio-pci loaded; /dev/vfio/vfio",
        "0000:01:00.0  INTEL SSDPED1D480GA, firmware E2010480, 447.1 GiB",
        "    driven by nvme as nvme0; IOMMU group 7, alone in it",
        "    nvme0n1: 447.1 GiB, blocks of 512 bytes, not in use",
        "    next: bamquery nvme bind 0000:01:00.0",
    ]


def test_mounts_are_found_by_number_and_by_name(tmp_path: Path) -> None:
    point = mounted(r"30 22 259:1 / /data\040disk rw - xfs /dev/nvme0n1p1 rw")
    assert said(idle(tmp_path / "a", point)) == ["nvme0n1p1 is mounted at /data disk"]
    # A Btrfs has a number of its own.
    point = mounted(r"30 22 0:42 /sub /x rw - btrfs /dev/nvme0n1p1 rw")
    assert said(idle(tmp_path / "b", point)) == ["nvme0n1p1 is mounted at /x"]
    first = {"proc/1/mountinfo": r"30 22 259:0 / /host\134x rw - ext4 /dev/root rw"}
    assert said(idle(tmp_path / "c", first)) == ["nvme0n1 is mounted at /host\\x"]
    point = mounted(r"30 22 0:9 / /bc rw - bcachefs /dev/sdb:/dev/nvme0n1 rw")
    assert said(idle(tmp_path / "d", point)) == ["nvme0n1 is mounted at /bc"]


def test_the_root_disk(tmp_path: Path) -> None:
    root = mounted("22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw", "23 22 259:1 /h /home rw - ext4 /dev/x rw")
    machine = idle(tmp_path, root)
    first, second = find_drive(machine, ADDRESS).uses
    assert (first.is_root, second.is_root) == (True, False)
    drive = list_as_dict(machine)["drives"][0]
    assert "choose another drive" in drive["next"]
    assert drive["in_the_way"][1]["way_out"] == "umount /home"


def test_swap_raid_lvm_and_encryption(tmp_path: Path) -> None:
    swap = {"proc/swaps": "Filename Type\n/dev/nvme0n1p1 partition 5"}
    assert said(idle(tmp_path / "swap", swap)) == ["nvme0n1p1 is swapped on"]
    volume = "sys/devices/virtual/block/dm-3"
    files = {
        f"{volume}/dm/name": "vg--a-data",
        f"{volume}/dm/uuid": "LVM-abc",
        f"{volume}/dev": "253:3",
        "proc/self/mountinfo": "40 1 253:3 / /srv rw - ext4 /dev/mapper/vg--a-data rw",
    }
    machine = idle(tmp_path / "lvm", files, {f"{PART}/holders/dm-3": volume})
    held, mount = find_drive(machine, ADDRESS).uses
    assert (str(held), held.way_out) == ("nvme0n1p1 is under vg--a-data (LVM)", "vgchange -an vg-a")
    assert (str(mount), mount.way_out) == ("dm-3 is mounted at /srv", "umount /srv")
    files = {f"{volume}/dm/name": "secret", f"{volume}/dm/uuid": "CRYPT-LUKS2-x"}
    machine = idle(tmp_path / "luks", files, {f"{PART}/holders/dm-3": volume})
    (held,) = find_drive(machine, ADDRESS).uses
    assert held.way_out == "cryptsetup close secret"
    machine = idle(tmp_path / "md", {f"{DISK}/holders/md0/md/level": "raid5"})
    (held,) = find_drive(machine, ADDRESS).uses
    assert (str(held), held.way_out) == ("nvme0n1 is under md0 (raid5)", "mdadm --stop /dev/md0")


def test_devices_built_in_a_circle_end(tmp_path: Path) -> None:
    a = "sys/devices/virtual/block/dm-1"
    machine = idle(tmp_path, {f"{a}/dev": "253:1"}, {f"{DISK}/holders/dm-1": a, f"{a}/holders/dm-1": a})
    assert said(machine) == ["nvme0n1 is under dm-1", "dm-1 is under dm-1"]


def test_a_second_device_of_a_btrfs_and_an_open_one(tmp_path: Path) -> None:
    assert said(idle(tmp_path / "btrfs", {"sys/fs/btrfs/u-1/devices/nvme0n1/x": ""})) == [
        "nvme0n1 is one of the devices of the Btrfs u-1"
    ]
    machine = idle(tmp_path / "open", {"proc/77/comm": "dd"}, {"proc/77/fd/3": "dev/nvme0n1p1"})
    (use,) = find_drive(machine, ADDRESS).uses
    assert (str(use), use.way_out) == ("nvme0n1 is open in the process dd (77)", "kill 77")


def test_what_is_claimed_within_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """ZFS is to be seen in no other way."""

    def busy(path: str, flags: int) -> int:
        asked.append(path)
        raise OSError(errno.EBUSY, "busy")

    asked: list[str] = []
    monkeypatch.setattr(uses.os, "open", busy)
    monkeypatch.setattr(Machine, "glob", lambda *_: [])
    (use,) = uses.find_uses(Machine(), Path("/sys/class/block/nvme9n1"))
    assert (use.kind, asked) == (UseKind.CLAIMED, ["/dev/nvme9n1"])
    assert "ZFS" in str(use)


def test_ways_to_a_namespace_lead_to_it(tmp_path: Path) -> None:
    """With multipath the kernel mounts nvme3n1, which is not below its controllers."""
    ways = {
        "sys/class/nvme/nvme0/nvme3c0n1/size": "8",
        "sys/class/block/nvme3n1/size": "8",
        "sys/class/block/nvme3n1/dev": "259:9",
        "proc/self/mountinfo": "30 22 259:9 / /deep rw - ext4 /dev/nvme3n1 rw",
    }
    machine = idle(tmp_path, ways, without=(DISK,))
    assert said(machine) == ["nvme3n1 is mounted at /deep"]


def test_what_shares_the_group(tmp_path: Path) -> None:
    folder = "sys/devices/pci0000:00/0000:00:1f.3"
    files = {f"{folder}/class": "0x040300", "sys/bus/pci/drivers/snd_hda_intel/x": ""}
    machine = idle(tmp_path / "sound", files, beside("0000:00:1f.3", folder, "snd_hda_intel"))
    (obstacle,) = list_as_dict(machine)["drives"][0]["in_the_way"]
    assert "0000:00:1f.3 (sound, driver: snd_hda_intel)" in obstacle["what"]
    assert "ACS" in obstacle["way_out"]
    bridge = {f"{folder}/class": "0x060400", "sys/bus/pci/drivers/pcieport/x": ""}
    machine = idle(tmp_path / "bridge", bridge, beside("0000:00:1f.3", folder, "pcieport"))
    assert list_as_dict(machine)["drives"][0]["in_the_way"] == []
    machine = idle(tmp_path / "nobody", {f"{folder}/class": "0x020000"}, beside("0000:00:1f.3", folder, None))
    assert list_as_dict(machine)["drives"][0]["in_the_way"] == []


def test_no_iommu_and_no_module(tmp_path: Path) -> None:
    machine = idle(
        tmp_path / "off", without=("sys/kernel/iommu_groups", f"{NVME}/iommu_group", "sys/class/iommu")
    )
    (obstacle,) = list_as_dict(machine)["drives"][0]["in_the_way"]
    assert obstacle["what"] == "there is no IOMMU group: it is off"
    assert "intel_iommu=on" in obstacle["way_out"]
    unsafe = {"sys/module/vfio/parameters/enable_unsafe_noiommu_mode": "Y"}
    machine = idle(tmp_path / "unsafe", unsafe, without=("sys/kernel/iommu_groups", f"{NVME}/iommu_group"))
    assert "does not use" in list_as_dict(machine)["drives"][0]["in_the_way"][0]["what"]
    gone = ("sys/bus/pci/drivers/vfio-pci",)
    modules = "lib/modules/6.8.0-45-generic/modules.dep"
    machine = idle(tmp_path / "absent", {modules: "kernel/x.ko:"}, without=gone)
    assert "6.8.0-45-generic has no module" in list_as_dict(machine)["drives"][0]["in_the_way"][0]["what"]
    machine = idle(tmp_path / "there", {modules: "kernel/drivers/vfio/pci/vfio-pci.ko.zst: a"}, without=gone)
    assert list_as_dict(machine)["iommu"]["vfio_pci"] == "loadable"
    assert list_as_dict(machine)["drives"][0]["in_the_way"] == []


def test_a_drive_of_user_space(tmp_path: Path) -> None:
    links = {f"{NVME}/driver": "sys/bus/pci/drivers/vfio-pci"}
    machine = idle(tmp_path, links=links, without=("sys/class/nvme",))
    text = "\n".join(list_as_lines(machine))
    assert "drive 8086:2701" in text
    assert "handed to user space" in text
    assert "next: bamquery nvme test 0000:01:00.0" in text
    assert list_as_dict(machine)["drives"][0]["bytes"] is None


def test_addresses(tmp_path: Path) -> None:
    machine = idle(tmp_path, {f"{BUS}/0000:00:02.0/class": "0x030000"})
    for text in ("0000:01:00.0", "01:00.0", " 0000:01:00.0 "):
        assert find_drive(machine, text).address == ADDRESS
    for text, message in (
        ("nvme0", "no address on the PCI bus"),
        ("../../x", "no address"),
        ("0000:09:00.0", "there is no device; NVMe drives here: 0000:01:00.0"),
        ("0000:00:02.0", "of class 0x030000, is no NVMe drive"),
    ):
        with pytest.raises(BamQueryError, match=message):
            find_drive(machine, text)


def test_nothing_private_is_told(tmp_path: Path) -> None:
    report = json.dumps(list_as_dict(make(tmp_path, NOT_MOUNTED)))
    assert "SSDPED1D480GA" in report
    assert "SECRET" not in report.upper()


def test_no_drives(tmp_path: Path) -> None:
    machine = idle(tmp_path, without=("sys/class/nvme", f"{NVME}/class"))
    assert next(iter(list_as_lines(machine))) == "no NVMe drives on the PCI bus"
