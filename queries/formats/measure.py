"""All formats measured in turns, and their answers compared."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.errors import BamQueryError
from bamquery.queries.formats.source import (
    TAKEN_COLUMNS,
    chosen_rows,
    few_rows,
    read_rows,
    reference_answer,
    reference_take,
    sorted_rows,
    write_rows,
)
from bamquery.queries.formats.systems.registry import FORMATS
from bamquery.queries.formats.worker import WORKLOADS, Job, Sample, Workload
from bamquery.queries.measuring.cold import files_below
from bamquery.queries.runner import agree

Tell = Callable[[str], None]
_DEADLINE: Final = 3600.0
"""Seconds after which a process is given up."""


@dataclass
class FormatResult:
    """What one format takes.

    Attributes:
        name: of the registry.
        size: bytes of its files.
        writing: seconds and processor seconds of making them; empty where another format has made them.
        samples: by workload, warm and cold.
        problems: what is wrong with its answers, or why there are none.
    """

    name: str
    size: int = 0
    writing: dict[str, float] = field(default_factory=dict)
    samples: dict[tuple[Workload, bool], list[Sample]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def figure(
        self, workload: Workload, warm: bool, what: Callable[[Sample], float]
    ) -> tuple[float, float] | None:
        """Median and least of something; None where nothing was measured."""
        values = [what(sample) for sample in self.samples.get((workload, warm), ())]
        return (statistics.median(values), min(values)) if values else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        found: dict[str, Any] = {"format": self.name, "label": FORMATS[self.name].label}
        found |= {"bytes": self.size, "writing": self.writing, "problems": self.problems}
        for (workload, warm), samples in self.samples.items():
            found.setdefault(workload, {})["warm" if warm else "cold"] = _by_field(samples)
        return found


def run_in_process(job: Job) -> str:
    """Do a job in a new process; the JSON that it says.

    Raises:
        BamQueryError: it failed, or did not end; with the last line of what it complained of.
    """
    command = [sys.executable, "-m", "bamquery", "bench", "formats", "--job", json.dumps(asdict(job))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE)
    except subprocess.TimeoutExpired:
        raise BamQueryError(f"did not end within {_DEADLINE:.0f} seconds") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise BamQueryError(lines[-1] if lines else f"ended with status {done.returncode}")
    return done.stdout.strip().splitlines()[-1]


class Comparison:
    """Formats over the rows of an Arrow file, in a folder that is theirs."""

    def __init__(
        self,
        folder: Path,
        source: Path,
        *,
        threads: int,
        take: int,
        tell: Tell,
        do: Callable[[Job], str] = run_in_process,
    ) -> None:
        """`take`: how many rows to take by number. `do` does a job, in a process of its own."""
        self._folder = folder
        self._source = source
        self._threads = threads
        self._tell = tell
        self._do = do
        rows = read_rows(source)
        self._few = folder / "few.arrow"
        write_rows(self._few, few_rows(rows))
        numbers = chosen_rows(rows.num_rows, take)
        self._numbers = folder / "numbers.npy"
        np.save(self._numbers, numbers)
        self.rows = rows.num_rows
        self.taken = len(numbers)
        self._expected_take = reference_take(rows, numbers)
        self.expected_answer = reference_answer(rows)

    def run(self, names: Sequence[str], rounds: int, repeat: int) -> list[FormatResult]:
        """Make the files, then let formats take turns: `rounds` times each workload, warm and cold.

        A warm process answers `repeat` times, a cold one once.
        """
        results = [FormatResult(name) for name in names]
        for result in results:
            self._write(result)
        for number in range(rounds):
            self._tell(f"round {number + 1} of {rounds}")
            for workload in WORKLOADS:
                for warm in (True, False):  # warm first: a measurement of the volume is kept by then
                    for result in results:
                        if not result.problems:
                            self._measure(result, workload, repeat if warm else 0)
        return results

    def _write(self, result: FormatResult) -> None:
        written_by = FORMATS[result.name].written_by
        folder = self._folder_of(result.name)
        done = folder.with_suffix(".done")
        if not done.exists():
            self._tell(f"writing {FORMATS[written_by or result.name].label}")
            said = ""
            for source, target in ((self._few, _practice_folder(folder)), (self._source, folder)):
                shutil.rmtree(target, ignore_errors=True)
                target.mkdir()
                job = replace(self._job(written_by or result.name, "write", source, 0), folder=str(target))
                found = self._try(result, job)
                if found is None:
                    return
                said = found
            done.write_text(said, encoding="utf-8")
        if not written_by:
            result.writing = json.loads(done.read_text(encoding="utf-8"))
        result.size = sum(file.stat().st_size for file in files_below(folder))

    def _measure(self, result: FormatResult, workload: Workload, repeat: int) -> None:
        answer = self._folder / "answer.arrow"
        said = self._try(result, self._job(result.name, workload, self._numbers, repeat))
        if said is None:
            return
        problem = self._wrong(workload, read_rows(answer))
        answer.unlink()
        if problem:
            result.problems.append(f"{workload}: {problem}")
            return
        found = [Sample(**sample) for sample in json.loads(said)]
        result.samples.setdefault((workload, bool(repeat)), []).extend(found)

    def _wrong(self, workload: Workload, answer: pa.Table) -> str:
        """What is wrong with an answer; empty where nothing is."""
        if workload == "q5":
            value = answer.column(0)[0].as_py()
            return "" if agree(value, self.expected_answer) else f"{value!r}, not {self.expected_answer!r}"
        expected = self._expected_take
        if answer.num_rows != expected.num_rows:
            return f"{answer.num_rows:,} rows, not {expected.num_rows:,}"
        found = sorted_rows(answer, TAKEN_COLUMNS)
        for name in TAKEN_COLUMNS:
            if not found[name].equals(expected[name]):
                return f"other values of {name}"
        return ""

    def _job(self, name: str, work: Any, source: Path, repeat: int) -> Job:
        folder, answer = self._folder_of(name), str(self._folder / "answer.arrow")
        practice = str(_practice_folder(folder))
        return Job(name, str(folder), work, str(source), self._threads, repeat, practice, answer)

    def _folder_of(self, name: str) -> Path:
        return self._folder / (FORMATS[name].written_by or name)

    def _try(self, result: FormatResult, job: Job) -> str | None:
        """What a job says; None where it failed, which is noted."""
        try:
            return self._do(job)
        except BamQueryError as error:
            result.problems.append(f"{job.work}: {error}")
            return None


def _by_field(samples: Sequence[Sample]) -> dict[str, list[Any]]:
    """Of each attribute its values, one a sample; seconds to the microsecond."""
    values = [asdict(sample) for sample in samples]
    return {
        name: [round(one[name], 6) if isinstance(one[name], float) else one[name] for one in values]
        for name in values[0]
    }


def _practice_folder(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-few")
