"""`bamquery bench formats`: its rows, its comparison of answers, and a small run of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import BamQueryError, StorageError
from bamquery.queries.formats import command
from bamquery.queries.formats.io_counters import IoCounters
from bamquery.queries.formats.measure import Comparison, FormatResult, run_in_process
from bamquery.queries.formats.report import complaints, json_of, lines_of, markdown_of
from bamquery.queries.formats.source import (
    TAKEN_COLUMNS,
    chosen_rows,
    copy_rows,
    generate_rows,
    read_rows,
    reference_answer,
    sorted_rows,
    write_rows,
)
from bamquery.queries.formats.systems import registry
from bamquery.queries.formats.systems.registry import FORMATS, require_format
from bamquery.queries.formats.worker import Job, Sample, run_job
from bamquery.queries.questions import COLUMNS

ROWS = 6000
REPEAT = 2


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("source") / "rows.arrow"
    generate_rows(path, ROWS, threads=1)
    return path


@pytest.fixture(autouse=True)
def threads_of_pyarrow() -> Iterator[None]:
    threads = pa.cpu_count()
    yield
    pa.set_cpu_count(threads)


def comparison(folder: Path, source: Path, do: Callable[[Job], str] = run_job) -> Comparison:
    return Comparison(folder, source, threads=2, take=50, tell=lambda line: None, do=do)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_gives_the_answers(tmp_path: Path, source: Path, name: str) -> None:
    """In this process: that each has one of its own is for what is measured."""
    library = FORMATS[name].library
    if library and find_spec(library) is None:
        pytest.skip(f"{library} is not installed: pip install {FORMATS[name].package}")
    compared = comparison(tmp_path, source)
    (result,) = compared.run([name], rounds=1, repeat=REPEAT)
    assert result.problems == []
    assert result.size > ROWS
    for workload in ("take", "q5"):
        assert len(result.samples[workload, True]) == REPEAT
        (cold,) = result.samples[workload, False]
        assert min(cold.seconds, cold.open_seconds, cold.processor_seconds) > 0
        assert (cold.own_count is None) == (FORMATS[name].module != "bamquery_table")


def test_answers_are_compared(tmp_path: Path, source: Path) -> None:
    def change(what: str) -> Callable[[Job], str]:
        def do(job: Job) -> str:
            said = run_job(job)
            if job.work == "write":
                return said
            table = read_rows(Path(job.answer))
            if what == "rows" and job.work == "take":
                table = table.slice(1)
            elif what == "value" and job.work == "take":
                first = table.column(0).to_numpy().copy()
                first[7] = np.nextafter(first[7], np.inf)
                table = table.set_column(0, table.column_names[0], pa.array(first))
            elif what == "answer" and job.work == "q5":
                table = pa.table({"answer": [table.column(0)[0].as_py() + 1e-3]})
            changed = tmp_path / "changed.arrow"  # the table is a mapping of the other one
            write_rows(changed, table)
            changed.replace(job.answer)
            return said

        return do

    for what, problem in (
        ("rows", "take: 49 rows, not 50"),
        ("value", "take: other values of total_amount"),
        ("answer", "q5: "),
        ("nothing", ""),
    ):
        (result,) = comparison(tmp_path, source, change(what)).run(["parquet"], rounds=1, repeat=1)
        assert [one[: len(problem)] for one in result.problems] == ([problem] if problem else []), what
        assert len(complaints([result])) == len(result.problems)


def test_a_process_that_fails_is_named(tmp_path: Path, source: Path) -> None:
    np.save(tmp_path / "numbers.npy", np.arange(2))
    numbers, answer = str(tmp_path / "numbers.npy"), str(tmp_path / "answer")
    job = Job("parquet", str(tmp_path), "q5", numbers, 1, 1, str(tmp_path), answer)
    with pytest.raises(BamQueryError, match=r"trips\.parquet"):
        run_in_process(job)

    def fail(job: Job) -> str:
        raise BamQueryError("it fell")

    (result,) = comparison(tmp_path, source, fail).run(["auto"], rounds=2, repeat=1)
    assert result.problems == ["write: it fell"]
    assert lines_of([result]) == [["BamQuery", *[""] * 7]]


def test_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(FORMATS["vortex"], library="no_such_library", package="vortex-data")
    monkeypatch.setattr(registry, "FORMATS", {**FORMATS, "vortex": absent})
    monkeypatch.setattr(command, "FORMATS", {"auto": FORMATS["auto"], "vortex": absent})
    with pytest.raises(BamQueryError, match=r"Vortex needs no_such_library.*: pip install vortex-data"):
        require_format("vortex")
    with pytest.raises(BamQueryError, match='no format "vertex"'):
        require_format("vertex")
    told: list[str] = []
    assert command._chosen(None, told.append) == [*registry.OURS]
    assert told[0].startswith("left out: comparing with Vortex needs")
    with pytest.raises(BamQueryError, match="pip install vortex-data"):
        command._chosen(["vortex"], told.append)


def test_rows(tmp_path: Path, source: Path) -> None:
    rows = read_rows(source)
    assert (rows.num_rows, rows.column_names) == (ROWS, list(COLUMNS))
    assert reference_answer(rows) is not None
    assert reference_answer(rows.slice(0, 0)) is None
    numbers = chosen_rows(100, 30)
    assert len(set(numbers)) == 30
    assert sorted(numbers) == numbers.tolist()
    assert set(numbers) < set(range(100))
    assert chosen_rows(5, 30).tolist() == [0, 1, 2, 3, 4]
    shuffled = rows.take(pa.array(np.random.default_rng(0).permutation(ROWS)))
    assert sorted_rows(shuffled, TAKEN_COLUMNS).equals(sorted_rows(rows, TAKEN_COLUMNS))
    real = tmp_path / "real.parquet"
    pq.write_table(rows.append_column("other", pa.array(range(ROWS))), real)
    copy_rows(tmp_path / "copy.arrow", real)
    assert read_rows(tmp_path / "copy.arrow").equals(rows)
    pq.write_table(rows.drop_columns(["extra"]), real)
    with pytest.raises(StorageError, match="no column extra"):
        copy_rows(tmp_path / "copy.arrow", real)


def test_counters_and_report(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    before = IoCounters.read()
    path.read_bytes()
    assert (IoCounters.read() - before).requested >= 1 << 20
    samples = [
        Sample(0.5, 0.25, 0.125, 10, 2_000_000, None, 0),
        Sample(0.0025, 0, 0.001, 10, 4_000_000, None, 0),
    ]
    result = FormatResult("duckdb", 12_345_678, {}, {("take", False): samples, ("take", True): samples[1:]})
    line = ["DuckDB", "12.3", "2.5 / 2.5, 1", "376 / 2.5, 1", "3.0", "", "", ""]
    assert lines_of([result]) == [line]
    assert markdown_of([result]).splitlines()[-1] == f"| {' | '.join(line)} |"
    said: Any = json.loads(json.dumps(json_of([result], {"rows": 5})))
    assert said["rows"] == 5
    cold = said["formats"][0]["take"]["cold"]
    assert (cold["from_disk"], cold["open_seconds"]) == ([2_000_000, 4_000_000], [0.25, 0])


def test_the_command(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Comparison.__init__.__kwdefaults__, "do", run_job)
    monkeypatch.setattr(command, "OURS", ("auto",))
    real = tmp_path / "real.parquet"
    pq.write_table(read_rows(source), real)
    options = ["--folder", str(tmp_path / "kept"), "--data", str(real), "--take", "20", "--rounds", "1"]
    options += [
        "--repeat",
        "1",
        "--threads",
        "1",
        "--json",
        str(tmp_path / "all.json"),
        "--against",
        "parquet",
    ]
    assert command.main(options) == 0
    said = json.loads((tmp_path / "all.json").read_text())
    assert (said["rows"], said["taken"], said["data"]) == (ROWS, 20, "real.parquet")
    assert [one["format"] for one in said["formats"]] == ["auto", "parquet"]
    assert said["machine"]["libraries"]["pyarrow"]
