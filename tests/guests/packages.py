"""Programs and kernels of guests: what Debian's packages have, through apt, kept in `build/guests`."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
CACHE: Final = Path(os.environ.get("BAMQUERY_GUESTS_CACHE") or REPOSITORY / "build" / "guests")
"""Whatever guests are made of and leave behind; it can be deleted at any time."""
QEMU: Final = "qemu-system-x86_64"
CARRIED_QEMU: Final = Path("bin") / QEMU
"""Where in the cache it is if it came from another machine (carry.py)."""
_DOWNLOAD_S: Final = 300
_INSTALL_S: Final = 600


class GuestsUnavailableError(Exception):
    """Guests cannot run here; the message is the reason, and what would help."""


class UntriedError(GuestsUnavailableError):
    """One kind of guest cannot run here, which is no failure where others are required."""


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time makes what is called so; others wait."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def installed(programs: Sequence[str], packages: Sequence[str]) -> str:
    """The path of the first of these programs that is there; else packages are installed until one is.

    Raises:
        GuestsUnavailableError: none is there, and cannot be installed.
    """
    with locked("installed"):
        for package in [None, *packages]:
            if package is not None:
                if os.getuid() != 0:
                    raise GuestsUnavailableError(
                        f"there is no {programs[0]}; as root: apt-get install {packages[0]}"
                    )
                _apt("install", "--yes", "--no-install-recommends", package, timeout=_INSTALL_S)
            for path in filter(None, map(shutil.which, programs)):
                return path
    raise GuestsUnavailableError(f"there is no {programs[0]}, though apt installed {' and '.join(packages)}")


def qemu() -> str:
    """Path of QEMU for x86-64, which was carried here, or is installed where root may do that."""
    carried = CACHE / CARRIED_QEMU
    if carried.exists():
        return str(carried)
    return installed([QEMU], ["qemu-system-x86"])


def unpacked(*packages: str) -> Path:
    """The folder with the files of the first of these packages that apt has; nothing is installed.

    What only depends on a kernel, as the package of the newest does, stands for that.

    Raises:
        GuestsUnavailableError: apt has none of them, or cannot get it.
    """
    return _unpacked(packages[0], [packages])


def unpacked_together(name: str, packages: Sequence[str]) -> Path:
    """The folder, called so, with the files of all these packages, which refer to each other.

    Raises:
        GuestsUnavailableError: apt does not have one of them, or cannot get it.
    """
    return _unpacked(name, [(package,) for package in packages])


def _unpacked(name: str, wanted: Sequence[Sequence[str]]) -> Path:
    with locked(name):
        folder = CACHE / "packages" / name
        if not folder.exists():
            part = folder.with_name(f"{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            for packages in wanted:
                _download(packages, part)
            part.rename(folder)
        return folder


def _download(packages: Sequence[str], folder: Path) -> None:
    if shutil.which("apt-cache") is None or shutil.which("dpkg") is None:
        raise GuestsUnavailableError(f"no apt-cache and dpkg here, by which {packages[0]} is had")
    name = _available(packages)
    if name is None and os.getuid() == 0:  # a bare container has no lists of packages
        _apt("update", timeout=_DOWNLOAD_S)
        name = _available(packages)
    if name is None:
        raise GuestsUnavailableError(f"apt has no package {' or '.join(packages)}")
    _apt("download", name, folder=folder, timeout=_DOWNLOAD_S)
    for archive in list(folder.glob("*.deb")):
        subprocess.run(["dpkg", "-x", archive, folder], check=True, timeout=_INSTALL_S)
        archive.unlink()


def _available(packages: Sequence[str]) -> str | None:
    for package in packages:
        command = ["apt-cache", "depends", "--important", package]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            kernels = re.findall(r"Depends: (linux-image-\S+)", done.stdout)
            return kernels[0] if package.startswith("linux-image-") and kernels else package
    return None


def _apt(*arguments: str, timeout: float, folder: Path | None = None) -> None:
    """Run apt-get; it asks nothing.

    A package list may be older than what the mirror has now: then it is brought up to date, once.
    """
    if shutil.which("apt-get") is None:
        raise GuestsUnavailableError(f"no apt-get here to {' '.join(arguments)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-q", *arguments]
    commands = [command]
    if arguments[0] != "update" and os.getuid() == 0:
        commands += [["apt-get", "-q", "update"], command]
    for each in commands:
        try:
            done = subprocess.run(
                each, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired as error:
            raise GuestsUnavailableError(f"{' '.join(each)}: no end after {timeout:.0f} s") from error
        if done.returncode == 0 and each is command:
            return
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
    raise GuestsUnavailableError(f"{' '.join(command)}: {' '.join(said)}")
