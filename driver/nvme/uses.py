"""What uses a block device of the kernel: why a drive must not be taken from it."""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from bamquery.driver.machine import Machine

_MOST_LAYERS: Final = 16
"""Of devices built upon each other; nobody has as many."""


class UseKind(StrEnum):
    """How a device is used."""

    MOUNT = "mounted"
    SWAP = "swap"
    HOLDER = "held"
    """Something is built on top: LVM, RAID, encryption."""
    MEMBER = "member"
    """One of several devices of a file system that is mounted."""
    OPEN = "open"
    """A process has it open."""
    CLAIMED = "claimed"
    """Somebody within the kernel has it for himself, and sysfs does not say who: ZFS, for one."""


@dataclass(frozen=True)
class Use:
    """One use.

    Attributes:
        kind: how.
        device: the kernel's name of what is used: a namespace, a partition, or what is built on them.
        by: mount point, holder, process.
        way_out: the command that ends the use.
    """

    kind: UseKind
    device: str
    by: str = ""
    way_out: str = ""

    @property
    def is_root(self) -> bool:
        """Whether the system runs from it."""
        return self.kind is UseKind.MOUNT and self.by == "/"

    def __str__(self) -> str:
        match self.kind:
            case UseKind.MOUNT:
                return (
                    f"{self.device} holds the root file system" if self.is_root else self._used("mounted at")
                )
            case UseKind.SWAP:
                return f"{self.device} is swapped on"
            case UseKind.HOLDER:
                return self._used("under")
            case UseKind.MEMBER:
                return self._used("one of the devices of")
            case UseKind.OPEN:
                return self._used("open in")
            case UseKind.CLAIMED:
                return f"{self.device} is claimed by something within the kernel, such as ZFS"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"kind": str(self.kind), "text": str(self)}

    def _used(self, how: str) -> str:
        return f"{self.device} is {how} {self.by}"


def find_uses(machine: Machine, device: Path) -> tuple[Use, ...]:
    """Uses of a block device's folder in sysfs, of its partitions and of what is built on them; each once."""
    uses = dict.fromkeys(_Uses(machine).of_disk(device))
    if not uses and _is_claimed(machine, device.name):
        uses = {Use(UseKind.CLAIMED, device.name, way_out=f"zpool status; lsblk /dev/{device.name}"): None}
    return tuple(uses)


def processes_with(machine: Machine, *files: str) -> list[str]:
    """`name (number)` of processes that have one of some files of /dev open, as far as one may look."""
    found = []
    for process in machine.glob("/proc/[0-9]*"):
        if process.name != str(os.getpid()) and any(
            machine.target(descriptor) in files for descriptor in _entries(process / "fd")
        ):
            found.append(f"{machine.text(process / 'comm') or 'process'} ({process.name})")
    return found


@dataclass(frozen=True)
class _Mount:
    number: str
    point: str
    kind: str
    sources: tuple[str, ...]


class _Uses:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._mounts = list(dict.fromkeys(_mounts(machine)))
        swaps = (machine.text("/proc/swaps") or "").splitlines()[1:]
        self._swaps = {_unescape(line.split()[0]) for line in swaps if line.split()}

    def of_disk(self, device: Path) -> Iterator[Use]:
        partitions = [part for part in _entries(device) if part.name.startswith(device.name)]
        for part in (device, *partitions):
            yield from self._of_device(part, 0)
        files = [f"/dev/{part.name}" for part in (device, *partitions)]
        for process in processes_with(self._machine, *files):
            number = process.rpartition("(")[2].rstrip(")")
            yield Use(UseKind.OPEN, device.name, f"the process {process}", f"kill {number}")

    def _of_device(self, device: Path, layer: int) -> Iterator[Use]:
        names = {f"/dev/{device.name}"}
        if mapped := self._machine.text(device / "dm/name"):
            names.add(f"/dev/mapper/{mapped}")
        number = self._machine.text(device / "dev")
        for mount in self._mounts:
            # A Btrfs has a device number of its own: only its source says where it is.
            if mount.number == number or names & set(mount.sources):
                out = f"umount {shlex.quote(mount.point)}" if mount.point != "/" else ""
                yield Use(UseKind.MOUNT, device.name, mount.point, out)
        if names & self._swaps:
            yield Use(UseKind.SWAP, device.name, way_out=f"swapoff /dev/{device.name}")
        for member in self._machine.glob(f"/sys/fs/btrfs/*/devices/{device.name}"):
            system = member.parent.parent.name
            yield Use(UseKind.MEMBER, device.name, f"the Btrfs {system}", f"umount the Btrfs {system}")
        for holder in _entries(device / "holders"):
            above = holder.resolve()
            yield Use(UseKind.HOLDER, device.name, *self._holder(above))
            if layer < _MOST_LAYERS:
                yield from self._of_device(above, layer + 1)

    def _holder(self, device: Path) -> tuple[str, str]:
        """What it is, and the command that takes it down."""
        mapped = self._machine.text(device / "dm/name")
        if level := self._machine.text(device / "md/level"):
            return f"{device.name} ({level})", f"mdadm --stop /dev/{device.name}"
        if mapped is None:
            return device.name, f"lsblk /dev/{device.name}"
        owner = (self._machine.text(device / "dm/uuid") or "").partition("-")[0]
        if owner == "LVM":
            # In the mapper's names a single hyphen is between group and volume, and two are one of a name.
            group = mapped.replace("--", "\0").partition("-")[0].replace("\0", "-")
            return f"{mapped} (LVM)", f"vgchange -an {group}"
        if owner == "CRYPT":
            return f"{mapped} (encryption)", f"cryptsetup close {mapped}"
        if owner == "mpath":
            return f"{mapped} (multipath)", f"multipath -f {mapped}"
        return f"{mapped} (device mapper)", f"dmsetup remove {mapped}"


def _mounts(machine: Machine) -> Iterator[_Mount]:
    """Of this process, and of the first, which may see others."""
    for process in ("self", "1"):
        for line in (machine.text(f"/proc/{process}/mountinfo") or "").splitlines():
            before, _, after = line.partition(" - ")
            words, kinds = before.split(), after.split()
            if len(words) > 4 and len(kinds) > 1:
                # bcachefs lists all its devices, with colons between.
                yield _Mount(words[2], _unescape(words[4]), kinds[0], tuple(_unescape(kinds[1]).split(":")))


def _unescape(word: str) -> str:
    r"""`\040` is a space there."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), word)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_claimed(machine: Machine, name: str) -> bool:
    """Whether an exclusive use of the device is refused, as it is while anybody else has one."""
    if not machine.is_this:
        return False
    try:
        os.close(os.open(f"/dev/{name}", os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False
