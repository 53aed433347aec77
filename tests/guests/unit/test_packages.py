"""Where guests cannot run the reason says what is missing, and what would help."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guests import packages
from tests.guests.packages import GuestsUnavailableError, installed, unpacked, unpacked_together

Machine = Callable[..., None]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with these programs, shell scripts, and no others."""
    monkeypatch.setattr(packages, "CACHE", tmp_path / "cache")

    def make(user: int = 0, **programs: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        for name, script in programs.items():
            path = folder / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setattr(os, "getuid", lambda: user)

    return make


def test_what_is_there_is_not_installed(machine: Machine) -> None:
    machine(user=1000, second="")
    assert installed(["first", "second"], ["package"]).endswith("/bin/second")


def test_only_root_installs(machine: Machine) -> None:
    machine(user=1000)
    with pytest.raises(GuestsUnavailableError, match="no first; as root: apt-get install package"):
        installed(["first"], ["package"])


def test_root_without_apt_installs_nothing(machine: Machine) -> None:
    machine(user=0)
    with pytest.raises(GuestsUnavailableError, match=r"no apt-get here to install .*package"):
        installed(["first"], ["package"])


def test_a_package_without_the_program_is_told(machine: Machine) -> None:
    machine(apt_get="exit 0")
    with pytest.raises(GuestsUnavailableError, match="no first, though apt installed one and two"):
        installed(["first"], ["one", "two"])


def test_apt_says_why_it_cannot(machine: Machine) -> None:
    machine(apt_get='[ "$2" = update ] || { echo "E: no space left" >&2; exit 100; }')
    with pytest.raises(GuestsUnavailableError, match=r"apt-get -q install .*package: E: no space left"):
        installed(["first"], ["package"])


def test_without_apt_there_is_no_kernel(machine: Machine) -> None:
    machine()
    with pytest.raises(GuestsUnavailableError, match="no apt-cache and dpkg here, by which kernel-a is had"):
        unpacked("kernel-a", "kernel-b")


def test_a_package_that_apt_does_not_have(machine: Machine) -> None:
    machine(apt_get="exit 0", dpkg="", apt_cache="exit 100")
    with pytest.raises(GuestsUnavailableError, match="apt has no package kernel-a or kernel-b"):
        unpacked("kernel-a", "kernel-b")


def test_the_newest_kernel_is_downloaded_once(machine: Machine, tmp_path: Path) -> None:
    said = tmp_path / "said"
    machine(
        user=1000,
        apt_cache='[ "$3" = linux-image-b ] && echo "  Depends: linux-image-9" || exit 100',
        apt_get=f'echo "$@" >>{said}; : >linux-image-9.deb',
        dpkg=': >"$3/vmlinuz-9"',
    )
    for _ in range(2):
        folder = unpacked("linux-image-a", "linux-image-b")
        assert [path.name for path in folder.iterdir()] == ["vmlinuz-9"]
    assert said.read_text() == "-q download linux-image-9\n"


def test_what_belongs_to_a_kernel_does_not_stand_for_it(machine: Machine, tmp_path: Path) -> None:
    machine(
        user=1000,
        apt_cache='echo "  Depends: linux-image-9"',
        apt_get=": >$3.deb",
        dpkg=': >"$3/$(basename ${2%.deb})"',
        basename='echo "${1##*/}"',
    )
    folder = unpacked_together("headers", ["linux-headers-9", "linux-kbuild-9"])
    assert sorted(path.name for path in folder.iterdir()) == ["linux-headers-9", "linux-kbuild-9"]
