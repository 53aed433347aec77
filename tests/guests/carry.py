"""Packs what a boot needs of Debian's packages, for a machine that has no network, and no QEMU.

`python -m tests.guests.carry kit.tar.xz` makes an archive. There, unpacked into a folder that
`BAMQUERY_GUESTS_CACHE` names, it stands for apt: QEMU with its libraries and their loader, whatever libraries
the machine has; the kernel, busybox, and compiled programs.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.guests import contents, packages, programs
from tests.guests.kernel import Kernel, cloud_kernel
from tests.guests.packages import QEMU, GuestsUnavailableError
from tests.guests.programs import Program
from tests.guests.ring_boot import SERVE

PROGRAMS: Final = (SERVE, contents.EXIT)
_FIRMWARE: Final = ("bios-256k.bin", "kvmvapic.bin", "linuxboot.bin", "linuxboot_dma.bin", "pvh.bin")
_FIRMWARE_FOLDERS: Final = ("/usr/share/qemu", "/usr/share/seabios")
_LOADER: Final = "ld-linux-x86-64.so.2"
_START: Final = f"""#!/bin/sh
here=$(dirname "$(readlink -f "$0")")/../qemu
exec "$here/{_LOADER}" --library-path "$here" "$here/{QEMU}" -L "$here/firmware" "$@"
"""


def pack(folder: Path, made: Iterable[Program] = PROGRAMS) -> None:
    """Fill an empty folder with it.

    Raises:
        GuestsUnavailableError: it is not to be had here.
    """
    _pack_qemu(folder)
    _pack_kernel(folder, cloud_kernel())
    busybox = contents.busybox()
    _copy(busybox, folder / busybox.relative_to(packages.CACHE))
    for each in made:
        _copy(each.compiled(), folder / programs.CARRIED / each.name)
    (folder / programs.CARRIED / programs.SOURCES).write_text(programs.digest_of_sources())


def _pack_qemu(folder: Path) -> None:
    emulator = Path(packages.qemu())
    listed = subprocess.run(["ldd", emulator], check=True, capture_output=True, text=True).stdout
    if missing := re.findall(r"(\S+) => not found", listed):
        raise GuestsUnavailableError(f"{emulator} has no {' '.join(missing)}")
    for path in [emulator, *map(Path, re.findall(r"(/\S+) \(0x", listed))]:
        copy = _copy(path, folder / "qemu" / path.name)
        if path.name != _LOADER:  # which debuggers want to know by its symbols
            subprocess.run(["strip", "--strip-unneeded", copy], check=True)
    for name in _FIRMWARE:
        found = [path for place in _FIRMWARE_FOLDERS if (path := Path(place) / name).exists()]
        if not found:
            raise GuestsUnavailableError(f"QEMU's {name} is not in {' or '.join(_FIRMWARE_FOLDERS)}")
        _copy(found[0], folder / "qemu" / "firmware" / name)
    start = folder / packages.CARRIED_QEMU
    start.parent.mkdir()
    start.write_text(_START)
    start.chmod(0o755)


def _pack_kernel(folder: Path, kernel: Kernel) -> None:
    """The files that `Kernel.of` looks at, and the modules of guests that do not have the host's files."""
    package = kernel.image.parent
    options = package / "boot" / f"config-{kernel.release}"
    built_in = kernel.modules / "modules.builtin"
    for path in (kernel.image, options, built_in, *kernel.load_order(*contents.MODULES)):
        _copy(path, folder / path.relative_to(packages.CACHE))
    boot = folder / package.relative_to(packages.CACHE) / "boot"
    (boot / f"vmlinuz-{kernel.release}").touch()  # unpacked already


def _copy(path: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(path, to))


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where it was made."""
    parser = argparse.ArgumentParser(prog="python -m tests.guests.carry", description=__doc__)
    parser.add_argument("archive", type=Path, help="the file to make, .tar.xz")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "kit"
        folder.mkdir()
        try:
            pack(folder)
        except GuestsUnavailableError as error:
            print(error, file=sys.stderr)
            return 1
        given.archive.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(given.archive, "w:xz", preset=9) as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name)
    print(f"{given.archive}: {given.archive.stat().st_size / (1 << 20):.1f} MiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
