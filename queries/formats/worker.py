"""One measurement of one format, in a process of its own, so that its caches are empty at first."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.queries.formats.io_counters import IoCounters
from bamquery.queries.formats.source import TAKEN_COLUMNS, read_rows, write_rows
from bamquery.queries.formats.systems.registry import make_system
from bamquery.queries.formats.systems.system import FormatSystem
from bamquery.queries.measuring.cold import cached_bytes, drop_pages, files_below
from bamquery.queries.questions import question

Workload = Literal["take", "q5"]
WORKLOADS: Final[tuple[Workload, ...]] = ("take", "q5")


@dataclass(frozen=True)
class Job:
    """What a process is to do.

    Attributes:
        format: a name of the registry.
        folder: of the format's files.
        work: `write` makes them, of the rows in `source`.
        source: the Arrow file of all rows, or a `.npy` file of the numbers of those to take.
        repeat: timed answers, after one that is not timed; 0: one from cold.
        practice: folder of the format's files of a few rows, which a process from cold asks first: what
            libraries load late, and what they make once, is not what cold files cost.
        answer: where the last answer goes, as Arrow.
    """

    format: str
    folder: str
    work: Workload | Literal["write"]
    source: str
    threads: int
    repeat: int
    practice: str
    answer: str


@dataclass(frozen=True)
class Sample:
    """What one answer took.

    Attributes:
        seconds: on the clock, without opening.
        open_seconds: until it could be asked; 0 where it was open.
        processor_seconds: of all threads, opening included.
        requested: bytes that system calls asked for, opening included.
        from_disk: bytes that came from a drive, opening included.
        own_count: bytes that the system says it read; None where it does not.
        left_in_cache: bytes of its files that could not be dropped from memory before.
    """

    seconds: float
    open_seconds: float
    processor_seconds: float
    requested: int
    from_disk: int
    own_count: int | None
    left_in_cache: int


def run_job(job: Job) -> str:
    """Do a job; JSON of what it took: samples, or seconds of writing."""
    folder = Path(job.folder)
    system = make_system(job.format, folder, job.threads)
    if job.work == "write":
        rows = read_rows(Path(job.source))
        began, processor = time.perf_counter(), time.process_time()
        system.write(rows)
        return json.dumps(
            {"seconds": time.perf_counter() - began, "processor_seconds": time.process_time() - processor}
        )
    work = _workload(system, job.work, np.load(job.source))
    if job.repeat:
        samples, answer = _time_warm(system, work, job.repeat)
    else:
        _practise(job)
        samples, answer = _time_cold(system, work, folder)
    _write_answer(answer, Path(job.answer))
    return json.dumps([asdict(sample) for sample in samples])


def _workload(system: FormatSystem, work: str, numbers: NDArray[np.int64]) -> Callable[[], Any]:
    if work == "q5":
        return lambda: system.ask(question("q5"))
    return lambda: system.take(numbers, TAKEN_COLUMNS)


def _practise(job: Job) -> None:
    system = make_system(job.format, Path(job.practice), job.threads)
    system.open()
    _workload(system, job.work, np.arange(2))()
    system.close()


def _time_cold(system: FormatSystem, work: Callable[[], Any], folder: Path) -> tuple[list[Sample], Any]:
    files = files_below(folder)
    drop_pages(files)
    left = cached_bytes(files)
    sample, answer = _time_one(system, work, opens=True, left_in_cache=left)
    system.close()
    return [sample], answer


def _time_warm(system: FormatSystem, work: Callable[[], Any], repeat: int) -> tuple[list[Sample], Any]:
    system.open()
    answer = work()
    samples = []
    for _ in range(repeat):
        sample, answer = _time_one(system, work)
        samples.append(sample)
    system.close()
    return samples, answer


def _time_one(
    system: FormatSystem, work: Callable[[], Any], *, opens: bool = False, left_in_cache: int = 0
) -> tuple[Sample, Any]:
    before, processor, began = IoCounters.read(), time.process_time(), time.perf_counter()
    if opens:
        system.open()
    opened = time.perf_counter()
    answer = work()
    ended = time.perf_counter()
    processor, counted = time.process_time() - processor, IoCounters.read() - before
    sample = Sample(
        ended - opened,
        opened - began if opens else 0.0,
        processor,
        counted.requested,
        counted.from_disk,
        system.bytes_read(),
        left_in_cache,
    )
    return sample, answer


def _write_answer(answer: Any, path: Path) -> None:
    table = answer if isinstance(answer, pa.Table) else pa.table({"answer": pa.array([answer], pa.float64())})
    write_rows(path, table)
