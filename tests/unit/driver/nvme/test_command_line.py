"""`bamquery nvme` as people call it."""

import io
import json
from pathlib import Path

import pytest

from bamquery.command_line.main import main
from bamquery.driver.machine import Machine
from bamquery.driver.nvme import binding, command_line
from tests.unit.driver.nvme.fake_kernel import ADDRESS, FakeKernel, driver_of, idle


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """A machine that the command takes for this one."""
    made = FakeKernel(idle(tmp_path))
    monkeypatch.setattr(command_line, "Machine", lambda: made.machine)
    monkeypatch.setattr(command_line, "Sysfs", lambda machine: made)
    monkeypatch.setattr(binding, "_DRIVER_SECONDS", 0.05)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return made


def test_list(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nvme", "list"]) == 0
    assert f"next: bamquery nvme bind {ADDRESS}" in capsys.readouterr().out
    assert main(["nvme", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [drive["address"] for drive in found["drives"]] == [ADDRESS]


def test_bind_says_what_it_does_and_does_it(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nvme", "bind", ADDRESS, "--dry-run"]) == 0
    planned = capsys.readouterr().out
    assert f"echo vfio-pci > /sys/bus/pci/devices/{ADDRESS}/driver_override" in planned
    assert f"to undo it: bamquery nvme unbind {ADDRESS}" in planned
    assert kernel.log == []
    assert main(["nvme", "bind", ADDRESS]) == 1
    assert "pass --yes" in capsys.readouterr().err
    assert kernel.log == []
    assert main(["nvme", "bind", ADDRESS, "--yes"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(planned)
    assert "/dev/vfio/7 belongs to " in captured.out
    assert "chown " in captured.out
    assert f"next: bamquery nvme test {ADDRESS}" in captured.out
    assert driver_of(kernel.machine) == "vfio-pci"
    assert main(["nvme", "bind", ADDRESS]) == 0
    assert "already" in capsys.readouterr().out
    assert main(["nvme", "unbind", ADDRESS]) == 0
    assert "is driven by the kernel" in capsys.readouterr().out
    assert driver_of(kernel.machine) == "nvme"


@pytest.mark.parametrize(("answer", "driver"), [("y\n", "vfio-pci"), ("\n", "nvme"), ("", "nvme")])
def test_bind_asks_on_a_terminal(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch, answer: str, driver: str
) -> None:
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert main(["nvme", "bind", ADDRESS]) == (0 if driver == "vfio-pci" else 1)
    assert driver_of(kernel.machine) == driver


def test_errors_are_a_line(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["bind", "0000:09:00.0"], ["unbind", "nvme0"]):
        assert main(["nvme", *arguments]) == 1
        text = capsys.readouterr().err
        assert text.startswith("bamquery: ")
        assert text.count("\n") == 1
        assert ADDRESS in text


def test_this_machine_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert Machine().is_this
    assert main(["nvme", "list", "--json"]) == 0
    assert "drives" in json.loads(capsys.readouterr().out)
