"""Kernels of guests: the image that boots fastest, and modules in an order in which they load."""

from __future__ import annotations

import lzma
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from tests.guests.packages import GuestsUnavailableError, locked, unpacked

_CLOUD: Final = ("linux-image-6.12-cloud-amd64", "linux-image-cloud-amd64")
_SETUP_SECTORS: Final = 0x1F1
_PAYLOAD: Final = (
    0x248  # offset in the protected-mode part, and length (Linux's Documentation/arch/x86/boot.rst)
)
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Kernel:
    """A kernel of a package.

    Attributes:
        release: as `uname -r` says.
        image: what QEMU loads, an ELF file.
        modules: the folder of its modules.
        options: what it was configured with: name, without CONFIG_, to `y`, `m` or a value.
        rebuilt: modules that come instead of those of the package, or beside them: file by name.
    """

    release: str
    image: Path
    modules: Path
    options: Mapping[str, str]
    rebuilt: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def of(cls, *packages: str) -> Kernel:
        """The kernel of the first of these packages that apt has.

        Raises:
            GuestsUnavailableError: there is none.
        """
        folder = unpacked(*packages)
        images = sorted((folder / "boot").glob("vmlinuz-*"))
        if not images:
            raise GuestsUnavailableError(f"{packages[0]} has no kernel in it")
        release = images[0].name.removeprefix("vmlinuz-")
        with locked(packages[0]):
            image = folder / "vmlinux"
            if not image.exists():
                part = folder / "vmlinux.part"
                part.write_bytes(elf_of(images[0].read_bytes()))
                part.rename(image)
        library = next(path for path in (folder / "lib", folder / "usr/lib") if (path / "modules").exists())
        text = (folder / "boot" / f"config-{release}").read_text()
        options = dict(re.findall(r"^CONFIG_(\w+)=(.*)$", text, re.MULTILINE))
        return cls(release, image, library / "modules" / release, options)

    def load_order(self, *names: str) -> list[Path]:
        """Files of these modules and of those that they need, the needed first; of none that is built in.

        Raises:
            LookupError: the kernel has no such module.
        """
        built_in = {
            _plain(Path(line).stem) for line in (self.modules / "modules.builtin").read_text().split()
        }
        files = {_plain(path.name.partition(".")[0]): path for path in self.modules.rglob("*.ko*")}
        files.update(self.rebuilt)
        ordered: dict[str, Path] = {}

        def add(name: str) -> None:
            if name in built_in or name in ordered:
                return
            if name not in files:
                raise LookupError(f"kernel {self.release} has no module {name}")
            for needed in needs(module_text(files[name])):
                add(_plain(needed))
            ordered[name] = files[name]

        for name in names:
            add(_plain(name))
        return list(ordered.values())


def cloud_kernel() -> Kernel:
    """Debian's for virtual machines: NVMe built in, VFIO as modules, small; without IOMMUFD, as are all."""
    return Kernel.of(*_CLOUD)


def elf_of(boot_image: bytes) -> bytes:
    """The kernel itself, out of what a boot loader loads: it need not unpack itself, which takes seconds.

    Another compression than zstd stays as it is: that boots, too.
    """
    begin = (boot_image[_SETUP_SECTORS] + 1) * 512
    offset, length = struct.unpack_from("<II", boot_image, _PAYLOAD)
    payload = boot_image[begin + offset : begin + offset + length]
    if not payload.startswith(_ZSTD):
        return boot_image
    (size,) = struct.unpack("<I", payload[-4:])
    return pa.Codec("zstd").decompress(payload[:-4], size, asbytes=True)


def module_text(path: Path) -> bytes:
    """A module as `insmod` wants it."""
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def needs(module: bytes) -> list[str]:
    """Names of the modules that have to be loaded before, which it says itself."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return found[1].decode().split(",") if found and found[1] else []


def _plain(name: str) -> str:
    """A dash and an underscore are one to the kernel."""
    return name.replace("-", "_")
