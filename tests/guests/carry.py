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
_MODULES: Final = ("accel-tcg-x86_64.so",)
_MODULE_FOLDERS: Final = ("/usr/lib/x86_64-linux-gnu/qemu", "/usr/lib64/qemu", "/usr/lib/qemu")
_LOADER: Final = "ld-linux-x86-64.so.2"
_START: Final = f"""#!/bin/sh
here=$(dirname "$(readlink -f "$0")")/../qemu
export QEMU_MODULE_DIR="$here/modules"
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
    to = folder / "qemu"
    modules = [_found(name, _MODULE_FOLDERS) for name in _MODULES]
    for path in sorted(
        {emulator, *_libraries(emulator), *(each for it in modules for each in _libraries(it))}
    ):
        copy = _copy(path, to / path.name)
        if path.name != _LOADER:  # which debuggers want to know by its symbols
            _strip(copy)
    for path in modules:
        _strip(_copy(path, to / "modules" / path.name))
    for name in _FIRMWARE:
        _copy(_found(name, _FIRMWARE_FOLDERS), to / "firmware" / name)
    start = folder / packages.CARRIED_QEMU
    start.parent.mkdir()
    start.write_text(_START)
    start.chmod(0o755)


def _found(name: str, folders: Sequence[str]) -> Path:
    for folder in folders:
        if (path := Path(folder) / name).exists():
            return path
    raise GuestsUnavailableError(f"QEMU's {name} is not in {' or '.join(folders)}")


def _libraries(program: Path) -> list[Path]:
    """Those that it is linked with, and what loads them."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    if missing := re.findall(r"(\S+) => not found", listed):
        raise GuestsUnavailableError(f"{program} has no {' '.join(missing)}")
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", listed)]


def _strip(path: Path) -> None:
    subprocess.run(["strip", "--strip-unneeded", path], check=True)


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
