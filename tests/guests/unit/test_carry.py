"""What another machine packed is taken, unless programs were made of other sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guests import carry, packages, programs
from tests.guests.packages import GuestsUnavailableError
from tests.guests.programs import FOLDER, Program

EXIT = Program((FOLDER / "exit.cpp",))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, on a machine that has neither QEMU nor a compiler nor root."""
    for module in (packages, programs):
        monkeypatch.setattr(module, "CACHE", tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(packages.os, "getuid", lambda: 1000)
    return tmp_path


def test_qemu_that_was_carried_is_taken(cache: Path) -> None:
    with pytest.raises(GuestsUnavailableError, match="there is no qemu"):
        packages.qemu()
    path = cache / packages.CARRIED_QEMU
    path.parent.mkdir()
    path.touch()
    assert packages.qemu() == str(path)


def test_programs_of_other_sources_are_not_taken(cache: Path) -> None:
    folder = cache / programs.CARRIED
    folder.mkdir()
    (folder / "exit").touch()
    (folder / programs.SOURCES).write_text(programs.digest_of_sources())
    assert EXIT.compiled() == folder / "exit"
    (folder / programs.SOURCES).write_text("others")
    with pytest.raises(GuestsUnavailableError, match="to compile the guests' programs with"):
        EXIT.compiled()


def test_what_is_missing_is_said(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry.main([str(cache / "kit.tar.xz")]) == 1
    assert "there is no qemu-system-x86_64" in capsys.readouterr().err
    assert not (cache / "kit.tar.xz").exists()
