"""docs/benchmarks/gpu/gpu_tables.py over measurements of a small table on the CPU."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from bamquery.queries.command_line import main

pytest.importorskip("duckdb")
SCRIPT = Path(__file__).parents[3] / "docs" / "benchmarks" / "gpu" / "gpu_tables.py"


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_tables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_measurements_nothing_is_claimed(
    tables: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tables.main(tmp_path) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    assert all(line.endswith("| not measured |") for line in rows)


def test_measurements_are_set_beside_what_was_to_be_shown(
    tables: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "taxi.bq")
    rows = ["--rows", "100k", "--order", "random", "--match-share", "0.0003", "--no-nulls"]
    assert main(["generate", database, *rows]) == 0
    common = ["run", database, "--table", "generated", "--device", "cpu", "--repeat", "1"]
    for maps in ("off", "on"):
        written = str(tmp_path / f"gpu-warm-maps-{maps}.json")
        assert main([*common, "--zone-maps", maps, "--against", "duckdb,pyarrow", "--json", written]) == 0
    assert main([*common, "--queries", "q5", "--json", str(tmp_path / "gpu-first-maps-on.json")]) == 0
    selectivity = ["selectivity", database, "--shares", "0.001,1", "--device", "cpu", "--repeat", "1"]
    assert main([*selectivity, "--json", str(tmp_path / "gpu-selectivity-maps-on.json")]) == 0
    rate = {"runs": [{"figures": [{"gigabytes_per_second": 50.0}]}], "machine": {}}
    (tmp_path / "gpu-stream-memory.json").write_text(json.dumps(rate))
    capsys.readouterr()
    assert tables.main(tmp_path) == 0
    text = capsys.readouterr().out
    line = {row.split(" | ")[0]: row for row in text.splitlines() if row.startswith("| ")}
    for what in ("| Q5 against DuckDB, zone maps on", "| filter stream over the best sequential rate"):
        assert "**" in next(row for start, row in line.items() if start.startswith(what))
    assert "of 50.0 GB/s" in text
    assert "0.2" in line["| I/O amplification Q1–Q5, zone maps off"]
    assert "connecting before took" in line["| first query of a process over the second, zone maps on"]
    assert "## Warm, without zone maps" in text
    assert "| 0.1000% |" in text

    found = json.loads((tmp_path / "gpu-warm-maps-on.json").read_text())
    found["right"], found["complaints"] = False, ["Q1: BamQuery says 3.0"]
    (tmp_path / "gpu-warm-maps-on.json").write_text(json.dumps(found))
    assert tables.main(tmp_path) == 1
    assert "**Wrong answers:** Q1: BamQuery says 3.0" in capsys.readouterr().out
