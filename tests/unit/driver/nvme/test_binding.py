"""Drives change their driver, or all is as it was; what is in use is refused."""

import errno
import os
from pathlib import Path

import pytest

from bamquery.driver.machine import Machine
from bamquery.driver.nvme import binding
from bamquery.driver.nvme.binding import bind, unbind
from bamquery.driver.nvme.sysfs import Sysfs
from bamquery.errors import BamQueryError, StorageError
from tests.unit.driver.doctor.fake_machine import NVME
from tests.unit.driver.nvme.fake_kernel import (
    ADDRESS,
    BUS,
    SECOND,
    SECOND_FILES,
    FakeKernel,
    beside,
    driver_of,
    idle,
    override_of,
)

FOLDER = f"/{BUS}/{ADDRESS}"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_DRIVER_SECONDS", 0.05)


def quiet(line: str) -> None:
    """Hear nothing."""


def test_there_and_back(tmp_path: Path) -> None:
    kernel = FakeKernel(idle(tmp_path))
    bind(kernel, [ADDRESS], quiet)
    assert (driver_of(kernel.machine), override_of(kernel.machine)) == ("vfio-pci", "vfio-pci")
    assert kernel.log == [
        f"vfio-pci > {FOLDER}/driver_override",
        f"{ADDRESS} > {FOLDER}/driver/unbind",
        f"{ADDRESS} > /sys/bus/pci/drivers_probe",
    ]
    kernel.log.clear()
    bind(kernel, [ADDRESS], quiet)
    assert kernel.log == []
    unbind(kernel, ADDRESS, quiet)
    assert (driver_of(kernel.machine), override_of(kernel.machine)) == ("nvme", "")
    assert len(kernel.log) == 3
    kernel.log.clear()
    unbind(kernel, ADDRESS, quiet)
    assert kernel.log == []


def test_modules_are_loaded_where_they_are_not(tmp_path: Path) -> None:
    kernel = FakeKernel(idle(tmp_path, without=("sys/bus/pci/drivers/vfio-pci",)))
    bind(kernel, [ADDRESS], quiet)
    assert kernel.log[0] == "modprobe vfio-pci"
    assert driver_of(kernel.machine) == "vfio-pci"
    links = {f"{NVME}/driver": "sys/bus/pci/drivers/vfio-pci"}
    kernel = FakeKernel(
        idle(tmp_path / "other", links=links, without=("sys/bus/pci/drivers/nvme", "sys/class/nvme"))
    )
    unbind(kernel, ADDRESS, quiet)
    assert kernel.log[0] == "modprobe nvme"
    assert driver_of(kernel.machine) == "nvme"


def test_a_drive_that_nobody_drives(tmp_path: Path) -> None:
    machine = idle(tmp_path, without=("sys/class/nvme", f"{NVME}/driver"))
    machine.path(FOLDER).joinpath("driver_override").write_text("\n")
    kernel = FakeKernel(machine)
    bind(kernel, [ADDRESS], quiet)
    assert driver_of(machine) == "vfio-pci"
    assert not any("unbind" in line for line in kernel.log)


@pytest.mark.parametrize(
    ("changes", "without", "message"),
    [
        ({"proc/self/mountinfo": "30 1 259:1 / /data rw - xfs x rw"}, (), "mounted at /data → umount /data"),
        ({"proc/self/mountinfo": "30 1 259:1 / / rw - xfs x rw"}, (), "root file system.*choose another"),
        ({"proc/swaps": "F\n/dev/nvme0n1p1 x"}, (), "swapped on → swapoff /dev/nvme0n1p1"),
        (
            {"sys/class/nvme/nvme0/nvme0n1/holders/md1/md/level": "raid0"},
            (),
            r"under md1 \(raid0\) → mdadm --stop /dev/md1",
        ),
        ({}, (f"{NVME}/iommu_group",), "no IOMMU group.*intel_iommu=on"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, changes: dict[str, str], without: tuple[str, ...], message: str
) -> None:
    kernel = FakeKernel(idle(tmp_path, changes, without=without))
    with pytest.raises(BamQueryError, match=message) as caught:
        bind(kernel, [ADDRESS], quiet)
    assert "INTEL SSDPED1D480GA" in str(caught.value)
    assert (kernel.log, driver_of(kernel.machine)) == ([], "nvme")


def test_drives_of_one_group_go_together(tmp_path: Path) -> None:
    links = beside("0000:02:00.0", SECOND, "nvme")
    kernel = FakeKernel(idle(tmp_path, SECOND_FILES, links))
    with pytest.raises(BamQueryError, match=r"bamquery nvme bind 0000:01:00\.0 0000:02:00\.0"):
        bind(kernel, [ADDRESS], quiet)
    bind(kernel, [ADDRESS, "02:00.0"], quiet)
    assert [driver_of(kernel.machine, one) for one in (ADDRESS, "0000:02:00.0")] == ["vfio-pci"] * 2


@pytest.mark.parametrize("part", ["driver_override", "unbind", "drivers_probe"])
@pytest.mark.parametrize(
    "failure",
    [
        OSError(errno.EBUSY, "Device or resource busy"),
        OSError(errno.EIO, "Input/output error"),
        TimeoutError("no answer within 30 s"),
    ],
    ids=["busy", "error", "hang"],
)
def test_what_fails_is_undone(tmp_path: Path, part: str, failure: OSError) -> None:
    kernel = FakeKernel(idle(tmp_path), fails={part: failure})
    told: list[str] = []
    with pytest.raises(StorageError) as caught:
        bind(kernel, [ADDRESS], told.append)
    text = str(caught.value)
    assert part in text
    assert (failure.strerror or "the kernel did not come back") in text
    assert f"{ADDRESS} is as it was, driven by nvme" in text
    assert (driver_of(kernel.machine), override_of(kernel.machine)) == ("nvme", "")
    assert any(line.startswith("undo: ") for line in told)


def test_what_cannot_be_undone_is_said(tmp_path: Path) -> None:
    hang = TimeoutError("no answer within 10 s")
    kernel = FakeKernel(idle(tmp_path), fails={"unbind": TimeoutError("no answer within 30 s")})
    told: list[str] = []

    def report(line: str) -> None:
        told.append(line)
        if line.startswith("undo"):
            kernel.fails["driver_override"] = hang

    with pytest.raises(StorageError, match=r"undoing failed, too: no answer within 10 s.*dmesg.*nvme unbind"):
        bind(kernel, [ADDRESS], report)


def test_a_driver_that_takes_nothing(tmp_path: Path) -> None:
    kernel = FakeKernel(idle(tmp_path), refuses=["vfio-pci"])
    with pytest.raises(
        StorageError, match=r"its driver is none, not vfio-pci; dmesg.*as it was, driven by nvme"
    ):
        bind(kernel, [ADDRESS], quiet)
    assert driver_of(kernel.machine) == "nvme"


def test_a_module_that_cannot_be_loaded_changes_nothing(tmp_path: Path) -> None:
    kernel = FakeKernel(
        idle(tmp_path, without=("sys/bus/pci/drivers/vfio-pci",)),
        fails={"modprobe vfio-pci": OSError(1, "modprobe failed")},
    )
    with pytest.raises(StorageError, match=r"modprobe vfio-pci: modprobe failed. Nothing was changed"):
        bind(kernel, [ADDRESS], quiet)
    assert kernel.log == ["modprobe vfio-pci"]


def test_ctrl_c_puts_the_drive_back(tmp_path: Path) -> None:
    kernel = FakeKernel(idle(tmp_path), fails={"drivers_probe": KeyboardInterrupt()})
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        bind(kernel, [ADDRESS], told.append)
    assert driver_of(kernel.machine) == "nvme"
    assert told[-1] == f"undone after Ctrl-C: {ADDRESS} is as it was, driven by nvme"


def test_a_drive_in_use_is_not_given_back(tmp_path: Path) -> None:
    """The kernel would wait for the process that drives it."""
    links = {f"{NVME}/driver": "sys/bus/pci/drivers/vfio-pci", "proc/99/fd/4": "dev/vfio/7"}
    kernel = FakeKernel(idle(tmp_path, {"proc/99/comm": "bamquery"}, links, ("sys/class/nvme",)))
    with pytest.raises(BamQueryError, match=r"the process bamquery \(99\) → end it first: kill 99"):
        unbind(kernel, ADDRESS, quiet)
    assert kernel.log == []


def test_who_may_not_write_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = FakeKernel(idle(tmp_path))
    monkeypatch.setattr(binding.os, "access", lambda *_: False)
    with pytest.raises(BamQueryError, match="takes root"):
        bind(kernel, [ADDRESS], quiet)
    assert kernel.log == []


def test_real_writes(tmp_path: Path) -> None:
    sysfs = Sysfs(Machine(tmp_path))
    (tmp_path / "file").write_text("")
    sysfs.write("/file", "text\n")
    assert (tmp_path / "file").read_text() == "text\n"
    with pytest.raises(FileNotFoundError):
        sysfs.write("/none", "text")
    with pytest.raises(OSError, match="No space") as caught:
        Sysfs().write("/dev/full", "text")
    assert caught.value.errno == errno.ENOSPC


def test_a_real_write_that_hangs_has_a_deadline(tmp_path: Path) -> None:
    """A pipe without a reader: who opens it waits for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TimeoutError, match=r"0\.2 s"):
        Sysfs(Machine(tmp_path)).write("/pipe", "text", deadline=0.2)


def test_real_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OSError, match="there is no modprobe"):
        Sysfs().load_module("none")
    program = tmp_path / "modprobe"
    program.write_text('#!/bin/sh\n[ "$1" = there ]\n')
    program.chmod(0o755)
    Sysfs().load_module("there")
    with pytest.raises(OSError, match=r"modprobe failed"):
        Sysfs().load_module("none")
