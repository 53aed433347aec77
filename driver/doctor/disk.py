"""How a folder's files can be read: file system, O_DIRECT, io_uring."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bamquery.driver.doctor.finding import Finding, Level
from bamquery.driver.machine import Machine, gib

_IO_URING_SETUP: Final = 425
"""The system call's number, the same on x86-64 and arm64."""
_ALIGNMENTS: Final = (512, 1024, 2048, 4096, 8192, 16384, 65536)
_STATX_DIOALIGN: Final = 0x2000
"""statx can say how direct reads must be aligned; kernels before 6.1 leave the bit unset."""
_AT_EMPTY_PATH: Final = 0x1000
_MEMORY_FILE_SYSTEMS: Final = ("tmpfs", "ramfs")


def check_file_system(machine: Machine) -> Iterator[Finding]:
    """Where the folder is, and how much room there is."""
    folder = machine.folder.absolute()
    existing = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    point, kind, device = _mount(machine, existing.resolve())
    room = os.statvfs(existing)
    free, size = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
    values = {"mount": point, "type": kind, "device_number": device, "free": free, "size": size}
    found = f"{kind} at {point}, {gib(free)} of {gib(size)} free"
    if kind in _MEMORY_FILE_SYSTEMS:
        yield Finding(
            "file system",
            Level.NOTE,
            found,
            "files there are in memory: fast, gone at the next start, and counted as memory",
            "a folder on a disk",
            values=values,
        )
    else:
        yield Finding("file system", Level.OK, found, values=values)


def check_direct(machine: Machine) -> Iterator[Finding]:
    """Whether files there can be read past the page cache, and how reads must be aligned."""
    if not machine.is_this:
        return
    try:
        descriptor = _open_direct(machine.folder)
    except OSError as error:
        if error.errno == errno.EINVAL:
            yield Finding(
                "O_DIRECT",
                Level.NOTE,
                "refused by the file system",
                "files are read through the page cache only",
                "reader = 'mapped' (the default), or a folder on ext4 or XFS",
                values={"alignment": None},
            )
        else:
            yield Finding(
                "O_DIRECT",
                Level.NOTE,
                f"could not be tried: {error.strerror}",
                "nothing is known of reads past the page cache",
                "name a folder that can be written to, or a file of 64 KiB or more that can be read",
            )
        return
    try:
        alignment = _alignment(descriptor)
    finally:
        os.close(descriptor)
    values = {"alignment": alignment}
    if alignment is None:
        yield Finding(
            "O_DIRECT",
            Level.NOTE,
            "opens, but reads fail",
            "files are read through the page cache only",
            "reader = 'mapped' (the default)",
            values=values,
        )
    elif alignment > 512:
        yield Finding(
            "O_DIRECT",
            Level.NOTE,
            f"works in units of {alignment} bytes",
            "a value of 8 bytes costs a read of this size",
            "nothing, if the drive's own blocks are that large (see namespace)",
            values=values,
        )
    else:
        yield Finding("O_DIRECT", Level.OK, "works in units of 512 bytes", values=values)


def check_io_uring(machine: Machine) -> Iterator[Finding]:
    """Whether the system call is there and allowed."""
    setting = machine.number("/proc/sys/kernel/io_uring_disabled")
    seccomp = machine.fields("/proc/self/status").get("Seccomp") == "2"
    number = io_uring_errno() if machine.is_this else errno.EPERM if setting else 0
    values = {"errno": number, "io_uring_disabled": setting, "seccomp": seccomp}
    if number == 0:
        yield Finding("io_uring", Level.OK, "works", values=values)
        return
    if number == errno.EPERM and setting:
        reason, advice = f"kernel.io_uring_disabled = {setting}", "sysctl kernel.io_uring_disabled=0"
    elif number in (errno.EPERM, errno.ENOSYS) and seccomp:
        reason = "a seccomp filter forbids it, as containers do"
        advice = "docker run --security-opt seccomp=... with a profile that allows io_uring_*"
    elif number == errno.ENOSYS:
        reason, advice = "the kernel has none", "a kernel from 5.6 on with CONFIG_IO_URING"
    else:
        reason, advice = os.strerror(number), "ulimit -l and the kernel's log"
    yield Finding(
        "io_uring",
        Level.MISSING,
        reason,
        "direct reads go through preadv on threads: fewer a second, more processor time",
        advice,
        values=values,
    )


def _mount(machine: Machine, path: Path) -> tuple[str, str, str]:
    """Mount point, type and device number of the file system that holds an absolute path."""
    best = ("/", "unknown type", "")
    for line in (machine.text("/proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        words = before.split()
        if len(words) < 5 or not after:
            continue
        point = words[4].encode().decode("unicode_escape")  # \040 for a space
        if path.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, after.split()[0], words[2])
    return best


def _open_direct(path: Path) -> int:
    """A descriptor of something with 64 KiB to read: the file itself, or a nameless one in the folder.

    The nameless one is all hole: nothing is written, and nothing is left.
    """
    if path.is_file():
        return os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    folder = next(candidate for candidate in (path, *path.absolute().parents) if candidate.is_dir())
    descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, 2 * _ALIGNMENTS[-1])
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _alignment(descriptor: int) -> int | None:
    """In which units direct reads work: as the kernel says, or the smallest in which one succeeds."""
    told = _told_alignment(descriptor)
    if told is not None:
        return told or None
    with mmap.mmap(-1, 2 * _ALIGNMENTS[-1]) as memory:
        for unit in _ALIGNMENTS:
            with memoryview(memory) as whole, whole[unit : 2 * unit] as target:
                try:
                    os.preadv(descriptor, [target], unit)
                except OSError:
                    continue
                return unit
    return None


def _told_alignment(descriptor: int) -> int | None:
    """Of offsets and lengths, by statx; 0: no direct reads; None: the kernel does not say."""
    library = ctypes.CDLL(None, use_errno=True)
    answer = ctypes.create_string_buffer(256)  # struct statx
    try:
        failed = library.statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_DIOALIGN, answer)
    except AttributeError:
        return None  # a C library without it
    (mask,), (alignment,) = struct.unpack_from("=I", answer, 0), struct.unpack_from("=I", answer, 156)
    return int(alignment) if not failed and mask & _STATX_DIOALIGN else None


def io_uring_errno() -> int:
    """0, or why no ring can be made; one of one entry is made and closed at once."""
    library = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(120)  # struct io_uring_params, all zero
    descriptor = library.syscall(_IO_URING_SETUP, 1, parameters)
    if descriptor < 0:
        return ctypes.get_errno()
    os.close(descriptor)
    return 0
