import errno
import os
from pathlib import Path

import pytest

from bamquery.driver.doctor import disk
from bamquery.driver.doctor.finding import Level
from bamquery.driver.machine import Machine
from tests.unit.driver.doctor.fake_machine import make


def test_the_file_system_of_a_folder(tmp_path: Path) -> None:
    made_up = Machine(root=make(tmp_path).root, folder=Path("/data disk"))
    assert disk._mount(made_up, Path("/data disk/x.arrow")) == ("/data disk", "xfs", "259:1")
    assert disk._mount(made_up, Path("/data")) == ("/", "ext4", "8:2")


def test_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    machine = Machine(folder=tmp_path / "not" / "yet")
    (finding,) = disk.check_file_system(machine)
    assert finding.values["size"] > 0
    list(disk.check_direct(machine))
    assert list(tmp_path.iterdir()) == []


def test_direct_reads_leave_nothing_and_tell_a_power_of_two(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(1 << 18))
    for path in (tmp_path, file):
        (finding,) = disk.check_direct(Machine(folder=path))
        unit = finding.values.get("alignment")
        assert unit is None or unit & (unit - 1) == 0
    assert list(tmp_path.iterdir()) == [file]


def test_alignment_by_trying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(1 << 18))
    real = os.preadv

    def picky(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        if offset % 4096 or len(buffers[0]) % 4096:
            raise OSError(errno.EINVAL, "unaligned")
        return real(descriptor, buffers, offset)

    monkeypatch.setattr(disk, "_told_alignment", lambda _: None)
    monkeypatch.setattr(os, "preadv", picky)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        assert disk._alignment(descriptor) == 4096
        monkeypatch.setattr(disk, "_told_alignment", lambda _: 0)
        assert disk._alignment(descriptor) is None
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EACCES])
def test_no_direct_reads(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(_: Path) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(disk, "_open_direct", refuse)
    (finding,) = disk.check_direct(Machine())
    assert finding.level is Level.NOTE
    assert ("refused by the file system" in finding.found) == (number == errno.EINVAL)


@pytest.mark.parametrize(
    ("number", "files", "reason"),
    [
        (errno.EPERM, {"proc/sys/kernel/io_uring_disabled": "2"}, "kernel.io_uring_disabled = 2"),
        (errno.EPERM, {"proc/self/status": "Seccomp:\t2"}, "seccomp"),
        (errno.ENOSYS, {"proc/self/status": "Seccomp:\t2"}, "seccomp"),
        (errno.ENOSYS, {}, "the kernel has none"),
        (errno.ENOMEM, {}, os.strerror(errno.ENOMEM)),
    ],
)
def test_why_io_uring_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, files: dict[str, str], reason: str
) -> None:
    monkeypatch.setattr(disk, "io_uring_errno", lambda: number)
    monkeypatch.setattr(Machine, "is_this", True)
    (finding,) = disk.check_io_uring(make(tmp_path, files))
    assert finding.level is Level.MISSING
    assert reason in finding.found


def test_io_uring_here() -> None:
    before = len(os.listdir("/proc/self/fd"))
    (finding,) = disk.check_io_uring(Machine())
    assert finding.values["errno"] == disk.io_uring_errno()
    assert len(os.listdir("/proc/self/fd")) == before
