"""`bamquery bench block --backing nvme:...`, over drives of memory."""

import json
from pathlib import Path
from typing import Any

import pytest

from bamquery import _native
from bamquery.command_line.main import main
from bamquery.driver.bench import drives
from bamquery.driver.bench.workload import Interrupted
from tests.unit.driver.nvme.fake_drive import content, use_fake_drive

PLACE = "nvme:0000:5e:00.0/1"
OTHER = "nvme:0000:5f:00.0/1"
QUICK = ["bench", "block", "--duration", "100ms", "--extent", "1M", "--depth", "8", "--pairs", "2"]


def bench(*arguments: str) -> int:
    return main([*QUICK, *arguments])


def figures(file: Path) -> list[dict[str, Any]]:
    (run,) = json.loads(file.read_text())["runs"]
    found: list[dict[str, Any]] = run["figures"]
    return found


def test_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = content()
    before = bytes(data)
    log = use_fake_drive(monkeypatch, data)
    file = tmp_path / "figures.json"
    assert bench("--backing", PLACE, "--json", str(file)) == 0
    (drive,) = figures(file)
    assert (drive["path"], drive["verified"], drive["errors"]) == ("drive", True, 0)
    (one,) = drive["drives"]
    assert one["namespace"] == PLACE
    assert (one["commands"], one["bytes"]) == (drive["operations"], drive["bytes"])
    assert one["doorbell_writes"] > 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1M of nvme:0000:5e:00.0/1" in text
    assert "compared with its first read" in text
    assert "registers, written by who issues" in text
    assert "doorbell writes" in text
    assert log[0] == "open 0000:5e:00.0 for reading auto 10.0"
    assert log[-1] == "close"
    assert bytes(data) == before


def test_beside_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_fake_drive(monkeypatch, content())
    file = tmp_path / "figures.json"
    beside = ["--beside", str(tmp_path / "blocks"), "--paths", "drive,rings,mapped"]
    assert bench("--backing", PLACE, *beside, "--json", str(file)) == 0
    assert [(one["path"], one["verified"]) for one in figures(file)] == [
        ("drive", True),
        ("rings", True),
        ("mapped", True),
    ]


def test_two_namespaces_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = use_fake_drive(monkeypatch, content())
    file = tmp_path / "figures.json"
    assert bench("--backing", f"{PLACE},{OTHER}", "--json", str(file)) == 0
    (drive,) = figures(file)
    assert [one["namespace"] for one in drive["drives"]] == [PLACE, OTHER]
    assert sum(one["commands"] for one in drive["drives"]) == drive["operations"]
    assert all(one["commands"] for one in drive["drives"])
    assert sum(line.startswith("open ") for line in log) == 2
    assert log.count("close") == 2


def test_writes_take_two_flags(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = use_fake_drive(monkeypatch, content())
    for arguments in (["--mix", "write"], ["--writable"], ["--mix", "70/30", "--lose-data"]):
        with pytest.raises(SystemExit) as caught:
            bench("--backing", PLACE, *arguments)
        assert caught.value.code == 2
        assert "--writable --lose-data, which overwrites" in capsys.readouterr().err
    assert log == []
    written: list[int] = []

    class Client:
        def __init__(self, controller: object) -> None: ...

        def write(self, nsid: int, lba: int, source: bytearray) -> None:
            assert _native.find_wrong(source, 1, lba) == -1
            written.append(len(source))

        def flush(self, nsid: int) -> None:
            written.append(0)

    monkeypatch.setattr(drives, "QueueClient", Client)
    # The drive of memory has not been filled then: known content is compared with what is known.
    assert bench("--backing", PLACE, "--writable", "--lose-data") == 1
    assert written == [1 << 20, 0]
    assert log[0] == "open 0000:5e:00.0 writable auto 10.0"
    assert "WRONG" in capsys.readouterr().out


def test_ctrl_c_keeps_the_drives_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = use_fake_drive(monkeypatch, content())

    def measure(path: str, run: Any, *_: object, **named: object) -> None:
        from bamquery.driver.bench.measure import figures_of

        while run.operations < 10:
            pass
        raise Interrupted([figures_of(path, run.stop(), verify=True)])

    monkeypatch.setattr(drives, "measure", measure)
    file = tmp_path / "figures.json"
    assert bench("--backing", PLACE, "--json", str(file)) == 130
    (drive,) = figures(file)
    assert drive["drives"][0]["commands"] == drive["operations"] > 0
    assert log[-1] == "close"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backing", "nvme:0000:5e:00.0"], "a namespace of a drive is nvme:ADDRESS/NSID"),
        (["--backing", "nvme:/1"], "nvme:ADDRESS/NSID"),
        (["--backing", "nvme:x/0"], "nvme:ADDRESS/NSID"),
        (["--backing", f"{PLACE},file"], "--backing file"),
        (["--backing", PLACE, "--device", "cuda:0"], "drives are read by CPU threads"),
        (["--backing", PLACE, "--paths", "io_uring"], "--beside FILE"),
        (["--backing", PLACE, "--direct"], "--beside FILE"),
        (["--writable"], "--backing nvme:ADDRESS/NSID"),
        (["--paths", "drive"], "cpu has rings, io_uring, mapped"),
        (["--backing", PLACE, "--backing", PLACE], "a namespace is there twice"),
        (["--backing", PLACE, "--controllers", "2"], "they serve memory and files"),
        (["--backing", "a", "--controllers", "2"], "--backing FILE once for each"),
        (["--backing", "a", "--backing", "a"], "a file is there twice"),
        (["--backing", "memory", "--backing", "a"], "--controllers N"),
        (["--controllers", "2", "--paths", "rings,mapped"], "there are rings only"),
        (["--controllers", "3"], "takes a multiple of 12288"),
    ],
)
def test_options_that_do_not_go_together(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        bench("--device", "cpu", *arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["--extent", "1G"], "nvme:0000:5e:00.0/1 has 2097152 bytes", 2),
        (["--block-size", "128k"], "takes 512 to 65536", 2),
        (["--backing", "nvme:0000:5e:00.0/2"], "blocks of 520 bytes; others: 1", 1),
    ],
)
def test_what_the_drive_does_not_have(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
    status: int,
) -> None:
    log = use_fake_drive(monkeypatch, content())
    assert bench("--backing", PLACE, *arguments) == status
    assert message in capsys.readouterr().err
    assert log[-1] == "close"


@pytest.mark.parametrize("benchmark", ["cache", "array"])
def test_pages_and_elements_of_drives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], benchmark: str
) -> None:
    data = content()
    log = use_fake_drive(monkeypatch, data)
    file = tmp_path / "figures.json"
    places = ("--backing", PLACE, "--backing", OTHER)
    options = ("--duration", "100ms", "--extent", "1M", "--depth", "8", "--pairs", "1", "--cache-size", "64k")
    assert main(["bench", benchmark, *options, *places, "--stripe", "8k", "--json", str(file)]) == 0
    (one,) = figures(file)
    assert (one["verified"], one["errors"]) == (None, 0)
    assert [drive["namespace"] for drive in one["drives"]] == [PLACE, OTHER]
    assert sum(drive["commands"] for drive in one["drives"]) == one["counters"]["misses"]
    assert all(drive["commands"] and drive["bytes"] and drive["depth"] == 8 for drive in one["drives"])
    text = " ".join(capsys.readouterr().out.split())
    assert "2 drives, stripes of 8k" in text
    assert "what drives hold is not known, nor compared" in text
    assert log.count("close") == 2
    for arguments, message in (
        (
            ["--page-size", "128k", "--stripe", "128k", "--cache-size", "1M"],
            "takes powers of two from 512 to 65536",
        ),
        (["--extent", "1G"], "has 2097152 bytes for its 536870912"),
    ):
        assert main(["bench", benchmark, *options, *places, *arguments]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
    assert log.count("close") == sum(line.startswith("open ") for line in log)
