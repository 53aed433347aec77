"""The file system that a kernel starts with: an archive of cpio's "new ASCII" format.

A header is "070701" and 13 numbers of 8 hexadecimal digits: inode, mode, user, group, links, time, size, four
device numbers of which the last two are those of a device node, the name's length with its zero, and a sum
that is 0. Names and data end at multiples of four bytes (Linux's Documentation/driver-api/early-userspace).
"""

from __future__ import annotations

import stat
from pathlib import PurePosixPath
from typing import Final

_MAGIC: Final = b"070701"
_END: Final = "TRAILER!!!"


class Archive:
    """Files, folders, links and device nodes, in the order in which they were added."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._names: set[str] = set()

    def folder(self, name: str) -> None:
        """And those that it is in; one that is there stays."""
        for path in [*reversed(PurePosixPath(name).parents), PurePosixPath(name)]:
            if str(path) not in {".", *self._names}:
                self._add(str(path), stat.S_IFDIR | 0o755)

    def file(self, name: str, data: bytes, *, is_executable: bool = False) -> None:
        """A file that holds this."""
        self._parent(name)
        self._add(name, stat.S_IFREG | (0o755 if is_executable else 0o644), data)

    def link(self, name: str, target: str) -> None:
        """A symbolic one."""
        self._parent(name)
        self._add(name, stat.S_IFLNK | 0o777, target.encode())

    def character_device(self, name: str, major: int, minor: int) -> None:
        """A node that only root may use."""
        self._parent(name)
        self._add(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def to_bytes(self) -> bytes:
        """The archive; more can be added after."""
        return b"".join([*self._parts, _entry(0, _END, 0, b"", (0, 0))])

    def _parent(self, name: str) -> None:
        self.folder(str(PurePosixPath(name).parent))

    def _add(self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        if name in self._names:
            raise ValueError(f"{name} is in the archive already")
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ValueError(f"{name} is no name below the root")
        self._names.add(name)
        self._parts.append(_entry(len(self._names), name, mode, data, device))


def _entry(inode: int, name: str, mode: int, data: bytes, device: tuple[int, int]) -> bytes:
    encoded = name.encode() + b"\0"
    numbers = [inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(encoded), 0]
    head = _MAGIC + b"".join(b"%08X" % number for number in numbers) + encoded
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
