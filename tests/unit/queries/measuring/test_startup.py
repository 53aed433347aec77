"""`bamquery bench startup`: processes are measured, failures and hangs are told."""

import json
import sys
from pathlib import Path

import pytest

from bamquery.queries.measuring import startup
from bamquery.queries.measuring.startup import Measured, Program, main, measure, programs, table


def python(name: str, code: str, beyond: str | None = None) -> Program:
    return Program(name, name, [sys.executable, "-c", code], beyond)


def test_takes_the_processor_time_of_each_run(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    idle = "import time; time.sleep(0.2)"
    one, other = measure([python("busy", busy), python("idle", idle)], 2, tmp_path)
    assert len(one.processor) == len(other.processor) == len(one.clock) == 2
    assert min(one.processor) >= 0.5
    assert min(other.clock) >= 0.2
    assert max(other.processor) < min(one.processor)


def test_a_program_that_fails_is_told_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"(?s)bad failed:.*no such thing"):
        measure([python("bad", "raise ValueError('no such thing')")], 1, tmp_path)


def test_a_program_that_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "_DEADLINE", 0.3)
    with pytest.raises(SystemExit, match="slow did not end within"):
        measure([python("slow", "import time; time.sleep(60)")], 1, tmp_path)


def test_modules_are_kept_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    measure([python("asks", "import sys; assert not sys.dont_write_bytecode")], 1, tmp_path)


def test_the_table_has_medians_and_what_is_beyond_the_libraries() -> None:
    libraries = Measured(python("libraries", ""), [0.1, 0.3, 0.2], [1.0, 1.0, 1.0])
    query = Measured(python("query", "", "libraries"), [0.25, 0.35, 0.3], [2.0, 2.0, 2.0])
    lines = table([libraries, query]).splitlines()
    assert lines[2] == "| libraries | **200** | 100 |  | 1000 |"
    assert lines[3] == "| query | **300** | 250 | 100 | 2000 |"


def test_names_are_different_and_what_is_taken_off_is_measured() -> None:
    names = [program.name for program in programs()]
    assert len(set(names)) == len(names)
    assert {program.beyond for program in programs()} - {None} <= set(names)


def test_the_record_says_of_machine_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(startup, "programs", lambda: [python("python", "pass")])
    assert (
        main(["--repeat", "2", "--json", str(tmp_path / "r.json"), "--markdown", str(tmp_path / "r.md")]) == 0
    )
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["machine"]["cores"] >= 1
    assert len(record["results"][0]["processor_seconds"]) == record["repeat"] == 2
    assert capsys.readouterr().out == (tmp_path / "r.md").read_text()
