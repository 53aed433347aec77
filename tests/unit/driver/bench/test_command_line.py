import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bamquery.command_line.main import main
from bamquery.driver.bench.workload import SECTOR_BYTES

QUICK = ["--device", "cpu", "--duration", "100ms", "--extent", "1M", "--depth", "8"]


def test_block_as_a_user_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    arguments = ["bench", "block", *QUICK, "--mix", "70/30", "--pattern", "zipf", "--json", str(report)]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert "4k zipf 70 % reads; cpu" in captured.out
    assert "rings" in captured.out
    assert "verified" in captured.out
    assert captured.err == ""  # no progress where nobody watches
    found = json.loads(report.read_text())
    assert found["benchmark"] == "block"
    assert found["command"].startswith("bamquery bench block --device cpu")
    assert (found["right"], found["interrupted"], found["sweep"]) == (True, False, None)
    assert {"processor", "cores", "memory_bytes", "system", "python", "gpus", "versions"} == set(
        found["machine"]
    )
    (run,) = found["runs"]
    assert run["workload"]["write_share"] == 0.3
    assert run["workload"]["backing"] == "memory"
    rings, mapped = run["figures"]
    assert (rings["path"], mapped["path"]) == ("rings", "mapped")
    assert rings["iops"] == pytest.approx(rings["operations"] / rings["seconds"])
    assert rings["gigabytes_per_second"] == pytest.approx(rings["iops"] * 4096 / 1e9)
    assert rings["cores_per_gigabyte"] == pytest.approx(rings["cpu_cores"] / rings["gigabytes_per_second"])
    assert set(rings["latency_ns"]) == {"mean", "p50", "p90", "p99", "p999", "max"}
    assert (rings["verified"], rings["errors"]) == (True, 0)


def test_a_sweep_and_its_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, picture = tmp_path / "report.json", tmp_path / "picture.png"
    sweep = ["--sweep", "cache-size=64k..256k", "--json", str(report), "--plot", str(picture)]
    assert main(["bench", "cache", *QUICK, *sweep]) == 0
    assert "cache-size" in capsys.readouterr().out
    found = json.loads(report.read_text())
    assert found["sweep"] == "cache-size"
    assert [run["swept"] for run in found["runs"]] == ["64k", "128k", "256k"]
    assert [run["workload"]["cache_bytes"] for run in found["runs"]] == [1 << 16, 1 << 17, 1 << 18]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_array(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "array", *QUICK, "--operation", "scan", "--element", "uint16", "--no-verify"]) == 0
    output = capsys.readouterr().out
    assert "scan of uint16" in output
    assert "not compared" in output


@pytest.mark.parametrize("path", ["rings", "mapped"])
def test_wrong_bytes_are_exit_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str) -> None:
    """One byte in a file that is used again, at a place that is not looked at before."""
    blocks = tmp_path / "blocks"
    options = [*QUICK, "--backing", str(blocks), "--pattern", "sequential", "--paths", path]
    assert main(["bench", "block", *options, "--keep"]) == 0
    data = bytearray(blocks.read_bytes())
    place = 4096 * 6 + 5 * SECTOR_BYTES + 17
    data[place] ^= 64
    blocks.write_bytes(data)
    capsys.readouterr()
    report = tmp_path / "report.json"
    assert main(["bench", "block", *options, "--json", str(report)]) == 1
    output = capsys.readouterr().out
    assert "WRONG" in output
    assert f"first at byte {place // 8 * 8}" in output
    found = json.loads(report.read_text())
    assert found["right"] is False
    assert found["runs"][0]["figures"][0]["verified"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "block", "--depth", "3"], "power of two"),
        (["bench", "block", "--block-size", "many"], "it takes bytes"),
        (["bench", "array", "--mix", "read"], "unrecognized"),
        (["bench", "lunch"], "invalid choice"),
        (["bench"], "required"),
    ],
)
def test_mistakes_are_exit_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


def test_an_unwritable_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "block", *QUICK, "--json", str(tmp_path / "no" / "folder")]) == 1
    assert "cannot write the figures" in capsys.readouterr().err


CHILD = """
import signal, sys
from bamquery.driver.bench import live
def said(self, path, seconds, operations, moved):
    if operations:
        print("measuring", path, flush=True)
live.LiveProgress.__call__ = said
# A shell's background job inherits an ignored SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
from bamquery.command_line.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("benchmark", ["block", "cache", "array"])
def test_ctrl_c_shows_what_was_measured_and_leaves_nothing(tmp_path: Path, benchmark: str) -> None:
    report = tmp_path / "report.json"
    folder = tmp_path / "folder"
    folder.mkdir()
    options = ["--device", "cpu", "--duration", "10m", "--extent", "1M", "--threads", "1"]
    options += ["--backing", str(folder / "blocks"), "--json", str(report)]
    if benchmark == "block":
        options += ["--paths", "rings", "--mix", "50/50"]
    command = [sys.executable, "-c", CHILD, "bench", benchmark, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith("measuring")
        assert os.listdir(folder) == ["blocks"]
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    assert errors == "bamquery: interrupted\n"
    assert "stopped by Ctrl-C" in output
    assert "verified" in output
    found = json.loads(report.read_text())
    assert (found["interrupted"], found["right"]) == (True, True)
    assert len(found["runs"][0]["figures"]) == 1
    assert os.listdir(folder) == []
