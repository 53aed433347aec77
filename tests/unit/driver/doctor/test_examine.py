import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from bamquery.driver.doctor import software
from bamquery.driver.doctor.command_line import main
from bamquery.driver.doctor.examine import examine, fit
from bamquery.driver.doctor.finding import Finding, Level
from bamquery.driver.machine import Machine
from bamquery.errors import GpuError
from tests.unit.driver.doctor.fake_machine import make


def test_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "could not be looked at" not in output
    assert "extension: _native" in output
    assert "file system: " in output
    assert list(tmp_path.iterdir()) == []


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["fit"] is True
    for finding in report["findings"]:
        assert finding["level"] in ("ok", "note", "missing")
        # Whatever is not fine says what follows and what to do.
        assert finding["level"] == "ok" or (finding["meaning"] and finding["advice"])
    assert {"kernel", "memory", "io_uring", "packages"} <= {
        finding["check"] for finding in report["findings"]
    }


def test_a_machine_with_nothing_to_read(tmp_path: Path) -> None:
    for finding in examine(Machine(root=tmp_path, folder=Path("/"))):
        assert "could not be looked at" not in finding.found, finding


def test_a_check_that_fails_is_a_note_and_the_others_go_on(tmp_path: Path) -> None:
    def check_luck(_: Machine) -> Iterator[Finding]:
        yield Finding("luck", Level.OK, "some")
        raise ZeroDivisionError("no more")

    def check_rest(_: Machine) -> Iterator[Finding]:
        yield Finding("rest", Level.OK, "fine")

    first, failed, last = examine(make(tmp_path), [check_luck, check_rest])
    assert (first.found, last.found) == ("some", "fine")
    assert (failed.check, failed.level) == ("luck", Level.NOTE)
    assert "ZeroDivisionError: no more" in failed.found
    assert fit([first, failed, last])


def test_what_bamquery_cannot_run_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = metadata.version

    def version(package: str) -> str:
        if package in ("pyarrow", "duckdb"):
            raise metadata.PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(software.metadata, "version", version)
    assert main([]) == 1
    output = capsys.readouterr().out
    assert "not installed: pyarrow" in output
    assert "BamQuery cannot run here" in output


def test_kernels_that_cannot_be_compiled_or_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> str:
        raise GpuError("NVRTC is nowhere")

    monkeypatch.setattr(software.toolchain, "nvrtc_version", absent)
    monkeypatch.setattr(software.os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler, cache = software.check_kernels(Machine())
    assert compiler.level is Level.MISSING
    assert "NVRTC is nowhere" in compiler.found
    assert not compiler.needed
    assert cache.level is Level.NOTE
    assert str(tmp_path) in cache.found


def test_kernels_of_who_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    *_, cache = software.check_kernels(Machine())
    assert cache.level is Level.NOTE
    assert cache.found == "there is no home folder"
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    *_, cache = software.check_kernels(Machine())
    assert cache.found.startswith("/somewhere/bamquery/kernels can")


def test_kernels_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software.toolchain, "nvrtc_version", lambda: "13.0")
    monkeypatch.setattr(software.toolchain, "cccl_version", lambda: "3005000")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    compiler, cache = software.check_kernels(Machine())
    assert compiler.found == "NVRTC 13.0, CCCL 3005000"
    assert cache.found.startswith("~/.cache")  # whose home it is stays untold
