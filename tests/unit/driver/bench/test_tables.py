"""The Markdown tables of recorded runs."""

import importlib.util
import json
from pathlib import Path

import pytest

from bamquery.driver.bench.report import Report, Run, to_json
from bamquery.driver.bench.workload import BlockWorkload, CacheWorkload
from bamquery.driver.doctor.finding import Finding, Level
from tests.unit.driver.bench.test_report import BAD, GOOD

SCRIPT = Path(__file__).parents[4] / "docs" / "benchmarks" / "io" / "io_tables.py"
spec = importlib.util.spec_from_file_location("io_tables", SCRIPT)
assert spec is not None
assert spec.loader is not None
io_tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(io_tables)


def write(path: Path, report: Report) -> None:
    path.write_text(json.dumps(to_json(report)))


def test_tables_of_all_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = [Run(BlockWorkload(), [GOOD], text) for text in ("1", "2")]
    write(
        tmp_path / "io-pairs.json", Report("block", "bamquery bench block --sweep pairs=1,2", "pairs", sweep)
    )
    write(
        tmp_path / "io-cache.json",
        Report("cache", "bamquery bench cache", "", [Run(CacheWorkload(), [GOOD])]),
    )
    assert io_tables.main(tmp_path) == 0
    output = capsys.readouterr().out
    assert "## cache" in output
    assert "`bamquery bench block --sweep pairs=1,2`" in output
    assert "| 2 | rings | 11.5 | 47.1 | 2 | 10 | 8.00 | 0.17 | verified |" in output
    assert output.count("cores, ") == 1  # the machine is described once


def test_what_went_wrong_stands_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        tmp_path / "io-bad.json",
        Report("block", "bamquery bench block", "", [Run(BlockWorkload(), [BAD])], True),
    )
    assert io_tables.main(tmp_path) == 1
    output = capsys.readouterr().out
    assert "**3 failed**" in output
    assert "**Interrupted.**" in output
    assert "- mapped: first error: out of range" in output


def test_a_machine_with_two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def two(_: object) -> list[Finding]:
        return [
            Finding("CUDA", Level.OK, "", values={"name": name}) for name in ("NVIDIA H200", "NVIDIA L4")
        ] + [Finding("PCIe of GPU 1", Level.OK, "", values={"gb_s": 63.02})]

    monkeypatch.setattr("bamquery.driver.doctor.gpu.check_gpus", two)
    monkeypatch.setattr("bamquery.driver.doctor.gpu.check_cuda", lambda _: [])
    line = io_tables.describe(to_json(Report("block", "", "", []))["machine"])
    assert line.startswith("NVIDIA H200, NVIDIA L4, 63.02 GB/s PCIe, ")
