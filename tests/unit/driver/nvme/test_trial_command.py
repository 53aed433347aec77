"""`bamquery nvme test` as people call it, over a drive of memory."""

import json
from pathlib import Path

import pytest

from bamquery.command_line.interruption import INTERRUPTION
from bamquery.command_line.main import main
from bamquery.driver.nvme import command_line, trial, trial_command
from tests.unit.driver.doctor.fake_machine import NVME
from tests.unit.driver.nvme.fake_drive import content, use_fake_drive
from tests.unit.driver.nvme.fake_kernel import ADDRESS, idle

BOUND = {f"{NVME}/driver": "sys/bus/pci/drivers/vfio-pci"}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done with the drive, which is bound to vfio-pci."""
    machine = idle(tmp_path / "machine", links=BOUND, without=("sys/class/nvme",))
    monkeypatch.setattr(command_line, "Machine", lambda: machine)
    monkeypatch.setattr(trial.Trial.__init__, "__defaults__", (0.02,))
    return use_fake_drive(monkeypatch, content())


def test_a_report(log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "drive.json"
    assert main(["nvme", "test", ADDRESS, "--json", str(file), "--blocks", "2000"]) == 0
    text = capsys.readouterr().out
    assert "Pretend\\x1b[31m, firmware 1, NVMe 1.4.0" in text
    assert "namespace 2: 0 MiB, blocks of 520 bytes; not taken: blocks of 520 bytes" in text
    assert "doorbells: registers, written by who issues" in text
    report = json.loads(file.read_text())
    assert report["right"] is True
    assert report["drive"]["link"]["width"] == 4
    assert report["versions"]["kernel"] == "6.8.0-45-generic"
    assert (report["vfio_interface"], report["iommu"]["group_type"]) == ("VFIO group 7", "DMA-FQ")
    assert report["limits"]["queue_depth"] == 32
    assert report["memory"]["transparent_huge_pages"] == "always [madvise] never"
    assert [one["refusal"] for one in report["namespaces"]] == [None, "blocks of 520 bytes"]
    assert len(report["rates"]) == 4
    assert "SECRET" not in file.read_text() + text
    assert log[0] == f"open {ADDRESS} for reading auto 10.0"
    assert log[-1] == "close"
    # Within the drive's limits.
    assert "controller 2 × 32, 32768" in log or "controller 3 × 32, 32768" in log
    assert "controller 1 × 32, 65536" in log


def test_ctrl_c_closes_the_drive_and_keeps_what_was_found(
    log: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trial.Trial, "_measure", interrupt)
    file = tmp_path / "drive.json"
    assert main(["nvme", "test", ADDRESS, "--json", str(file), "--blocks", "2000"]) == 130
    captured = capsys.readouterr()
    assert "all the same" in captured.out
    assert captured.err == "bamquery: interrupted\n"
    report = json.loads(file.read_text())
    assert (report["interrupted"], report["right"], report["rates"]) == (True, False, [])
    assert log[-1] == "close"


def test_a_ctrl_c_whose_exception_was_lost(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As imports of compiled modules lose it; it is noted all the same."""
    monkeypatch.setattr(INTERRUPTION, "noted", True)
    assert main(["nvme", "test", ADDRESS, "--blocks", "4000"]) == 130
    assert log[-1] == "close"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nsid", "2"], "namespace 2 of 0000:01:00.0: blocks of 520 bytes; others: 1"),
        (["--nsid", "9"], "no namespace 9; namespaces: 1; namespace 2: blocks of 520 bytes"),
        (["--json", "/none/x.json", "--blocks", "10"], "/none/x.json: cannot write the report"),
    ],
)
def test_what_cannot_be(
    log: list[str], capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["nvme", "test", ADDRESS, *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert log[-1] == "close"


def test_a_drive_of_the_kernel_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = idle(tmp_path)
    monkeypatch.setattr(command_line, "Machine", lambda: machine)
    log = use_fake_drive(monkeypatch, content())
    assert main(["nvme", "test", ADDRESS]) == 1
    assert f"is driven by nvme → bamquery nvme bind {ADDRESS}" in capsys.readouterr().err
    assert log == []


def test_wrong_numbers() -> None:
    for arguments in (["--blocks", "0"], ["--nsid", "x"]):
        with pytest.raises(SystemExit) as caught:
            main(["nvme", "test", ADDRESS, *arguments])
        assert caught.value.code == 2


def test_statuses() -> None:
    assert (trial_command.OK, trial_command.FAILED, trial_command.INTERRUPTED) == (0, 1, 130)
