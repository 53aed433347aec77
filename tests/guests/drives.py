"""NVMe drives of guests: what they are like, their images, and how QEMU is told."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.guests import content, pattern
from tests.guests.packages import CACHE, locked

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_FIRST_SLOT: Final = 0x10
_AT_ONCE: Final = 4 << 20  # bytes of the pattern


@dataclass(frozen=True)
class Fault:
    """An error of the medium, injected by QEMU's blkdebug: what reads or writes the sector fails.

    Attributes:
        sector: of 512 bytes, whatever the blocks' size; None for each.
        operation: `read`, `write` or `flush`.
        errno: which error the image's file has; 5 becomes 0x281 for reads, 0x280 for writes.
        once: the next time it works.
    """

    sector: int | None
    operation: str = "read"
    errno: int = 5
    once: bool = False


@dataclass(frozen=True)
class Namespace:
    """One of a drive.

    Attributes:
        size: bytes.
        lba_bytes: a block's size, 512 or 4,096.
        patterned: bytes from its begin that hold `pattern.blocks`; the rest is zeros, and takes no space.
        iops: commands in a second, at most; 0 for no limit.
        faults: what fails.
        metadata: bytes beside each block.
        protection: type of protection information, 0 for none.
        seed: of `content.blocks`, which a GPU's kernels check: then these are there instead.
    """

    size: int
    lba_bytes: int = 512
    patterned: int = 64 << 20
    iops: int = 0
    faults: tuple[Fault, ...] = ()
    metadata: int = 0
    protection: int = 0
    seed: int | None = None


@dataclass(frozen=True)
class Drive:
    """An NVMe controller with its namespaces, numbered from 1.

    Attributes:
        queues: pairs of I/O queues.
        mdts: transfers are up to 4,096 << mdts bytes.
        cmb_mb: MiB of controller memory buffer.
        serial: its serial number; made of its place where none is given.
        place: slot and function on the bus, as `10.0`; slots from 10 on, in order, where none is given.
            Functions of one slot share an IOMMU group.
        options: more of QEMU's `-device nvme`, as `msix_qsize=4`.
    """

    namespaces: tuple[Namespace, ...]
    queues: int = 64
    mdts: int = 7
    cmb_mb: int = 0
    serial: str = ""
    place: str = ""
    options: str = ""

    def place_at(self, index: int) -> str:
        """Slot and function of the drive that is attached as this one, from 0."""
        return self.place or f"{_FIRST_SLOT + index:x}.0"

    def address_at(self, index: int) -> str:
        """Its PCI address in the guest."""
        slot, function = self.place_at(index).split(".")
        return f"0000:00:{int(slot, 16):02x}.{function}"


def drive(size: str, lba_bytes: int = 512, **namespace: object) -> Drive:
    """A drive of one namespace; the size is as `64M`."""
    return Drive((Namespace(bytes_of(size), lba_bytes, **namespace),))  # type: ignore[arg-type]


def parsed(text: str) -> list[Drive]:
    """Drives as a command line has them: `512:64M,4096:1G:iops=2000`.

    Raises:
        ValueError: it is none of these.
    """
    drives = []
    for item in filter(None, text.split(",")):
        lba, size, *settings = item.split(":")
        numbers = {key: int(value) for key, value in (setting.split("=") for setting in settings)}
        drives.append(drive(size, int(lba), **numbers))
    return drives


def bytes_of(size: str) -> int:
    """`64M` as a number of bytes."""
    found = re.fullmatch(r"(\d+)([KMG]?)", size)
    if found is None:
        raise ValueError(f"{size} is no size: a number and K, M or G")
    return int(found[1]) * _UNITS[found[2]]


def images(drives: Sequence[Drive], folder: Path) -> list[list[Path]]:
    """A copy in `folder` of each namespace's image, by drives: guests write to it, and it is read after."""
    made = []
    for index, each in enumerate(drives):
        paths = []
        for nsid, namespace in enumerate(each.namespaces, 1):
            path = folder / f"drive{index}-{nsid}.img"
            command = ["cp", "--reflink=auto", "--sparse=always", _master(index, namespace), path]
            subprocess.run(command, check=True, timeout=120)
            paths.append(path)
        made.append(paths)
    return made


def _master(index: int, namespace: Namespace) -> Path:
    """The image as it is at first, kept; namespaces of a drive have the same words."""
    count = min(namespace.patterned, namespace.size) // namespace.lba_bytes
    words_of = f"{index}" if namespace.seed is None else f"seed{namespace.seed}"
    name = f"{words_of}-{namespace.size}-{namespace.lba_bytes}-{count}-{namespace.metadata}.img"
    folder = CACHE / "images"
    with locked("images"):
        folder.mkdir(exist_ok=True)
        path = folder / name
        if not path.exists():
            part = path.with_suffix(".part")
            with part.open("wb") as file:
                step = _AT_ONCE // namespace.lba_bytes
                for first in range(0, count, step):
                    file.write(_words(index, namespace, first, min(step, count - first)))
                file.truncate(namespace.size)  # QEMU keeps metadata within it, after the blocks
            part.rename(path)
    return path


def _words(index: int, namespace: Namespace, first: int, count: int) -> bytes:
    """What so many blocks hold."""
    if namespace.seed is not None:
        return content.blocks(namespace.seed, first, count, namespace.lba_bytes).tobytes()
    words = pattern.blocks(index, first, count, namespace.lba_bytes)
    return words.astype("<u8", copy=False).tobytes()


def arguments(drives: Sequence[Drive], paths: Sequence[Sequence[Path]]) -> list[str]:
    """QEMU's, for these drives over these images."""
    made = []
    slots = [each.place_at(index).split(".")[0] for index, each in enumerate(drives)]
    for index, (each, files) in enumerate(zip(drives, paths, strict=True)):
        shares = ",multifunction=on" if slots.count(slots[index]) > 1 else ""
        more = f",{each.options}" if each.options else ""
        made += [
            "-device",
            f"nvme,id=nvme{index},serial={each.serial or f'guest{index}'},addr={each.place_at(index)}{shares}"
            f",max_ioqpairs={each.queues},mdts={each.mdts},cmb_size_mb={each.cmb_mb}{more}",
        ]
        for nsid, (namespace, path) in enumerate(zip(each.namespaces, files, strict=True), 1):
            name = f"drive{index}-{nsid}"
            made += ["-drive", _backend(name, namespace, path)]
            made += [
                "-device",
                f"nvme-ns,bus=nvme{index},drive={name},nsid={nsid},logical_block_size={namespace.lba_bytes}"
                f",physical_block_size={namespace.lba_bytes},ms={namespace.metadata},pi={namespace.protection}",
            ]
    return made


def _backend(name: str, namespace: Namespace, path: Path) -> str:
    """Over the file, faults; over them, the throttle."""
    parts = ["if=none", f"id={name}", "cache=unsafe"]  # flushes need not reach the host's disk
    if namespace.faults:
        parts += [
            "driver=blkdebug",
            "image.driver=raw",
            "image.file.driver=file",
            f"image.file.filename={path}",
        ]
        for place, fault in enumerate(namespace.faults):
            rule = f"inject-error.{place}"
            parts += [f"{rule}.event=none", f"{rule}.iotype={fault.operation}", f"{rule}.errno={fault.errno}"]
            parts.append(f"{rule}.once={'on' if fault.once else 'off'}")
            if fault.sector is not None:
                parts.append(f"{rule}.sector={fault.sector}")
    else:
        parts += ["format=raw", f"file={path}"]
    if namespace.iops:
        parts.append(f"throttling.iops-total={namespace.iops}")
    return ",".join(parts)
