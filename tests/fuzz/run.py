"""Damaged databases and files, hostile statements and killed processes, as many as one likes.

    python -m tests.fuzz.run --databases 1000 --files 1000 --statements 1000 --kills 20 --seed 1 --jobs 2
    python -m tests.fuzz.run --databases 1 --seed 1234    # the case that was reported as databases 1234

Each case runs in a process of limited memory that is killed at a deadline. It fails where the process dies,
the deadline passes, memory grows beyond a bound, an error is not one that users are told about, or rows are
wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.kills import kill_repeatedly

KINDS = ("databases", "files", "statements")
DEADLINE_SECONDS = 60.0
"""Of one case: 4 s are what a statement may take, and machines are busy."""
_START_SECONDS = 300.0
_FEW_THREADS = {
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
    "MALLOC_ARENA_MAX": "2",
}
"""What a worker cannot say itself: NumPy starts a thread a core when it is loaded; an arena takes 64 MB."""


@dataclass
class Tally:
    """What became of the cases of one kind."""

    kind: str
    ends: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    """Seed, what failed, and a traceback where there is one."""
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        """How many there were."""
        return self.ends.total() + len(self.failures)

    def report(self) -> str:
        """Counts, and each failure with what repeats it."""
        ends = ", ".join(f"{count} {end}" for end, count in self.ends.most_common())
        rate = self.cases / max(self.seconds, 1e-9)
        lines = [
            f"{self.kind}: {self.cases} cases, {rate:.1f} a second: {ends}; {len(self.failures)} failures"
        ]
        for seed, what, trace in self.failures:
            lines.append(f"  {self.kind} {seed}: {ascii(what)[1:400]}")
            lines += [f"    {ascii(line)[1:-1]}" for line in trace.splitlines()[-14:]]
        return "\n".join(lines)


class Worker:
    """A process that runs cases one at a time; started anew where it dies."""

    def __init__(self, kind: str) -> None:
        """Start it."""
        self._kind = kind
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "tests.fuzz.worker", self._kind]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **_FEW_THREADS},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._said: list[str] = []
        self._threads = [
            threading.Thread(target=self._listen, args=(self._process, self._lines), daemon=True),
            threading.Thread(target=self._hear, args=(self._process, self._said), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        if "ready" not in self._lines.get(timeout=_START_SECONDS):
            raise RuntimeError("a worker does not start:\n" + "".join(self._said))

    @staticmethod
    def _listen(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    @staticmethod
    def _hear(process: subprocess.Popen[str], said: list[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            del said[:-40]

    def run(self, seed: int, deadline: float) -> dict[str, str]:
        """What became of the case."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seed}\n")
        self._process.stdin.flush()
        try:
            line = self._lines.get(timeout=deadline)
        except queue.Empty:
            self.close()
            self._start()
            return {"failure": f"hang: more than {deadline:g} s"}
        if line:
            answer: dict[str, str] = json.loads(line)
            return answer
        status = self._process.wait()
        self.close()
        said = "".join(self._said)
        self._start()
        return {"failure": f"crash: the process ended with {status}", "trace": said}

    def close(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):  # a seed that it never read
                    stream.close()


def run_cases(kind: str, count: int, seed: int, jobs: int, deadline: float = DEADLINE_SECONDS) -> Tally:
    """Cases with the seeds from `seed` on, in as many processes."""
    tally, lock, seeds = Tally(kind), threading.Lock(), iter(range(seed, seed + count))
    workers = [Worker(kind) for _ in range(min(jobs, count))]

    def work(worker: Worker) -> None:
        while True:
            with lock:
                mine = next(seeds, None)
            if mine is None:
                return
            answer = worker.run(mine, deadline)
            with lock:
                if answer["failure"]:
                    tally.failures.append((mine, answer["failure"], answer.get("trace", "")))
                else:
                    tally.ends[answer["end"]] += 1

    started = time.monotonic()
    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker in workers:
        worker.close()
    tally.seconds = time.monotonic() - started
    return tally


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="cases that must not fail", allow_abbrev=False)
    for kind in KINDS:
        parser.add_argument(f"--{kind}", type=int, default=0, metavar="N", help="how many cases")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="how many processes to kill")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the first case of each kind")
    parser.add_argument("--jobs", type=int, default=2, metavar="J", help="processes at a time")
    parser.add_argument("--folder", type=Path, help="where databases of killed processes are; made and kept")
    arguments = parser.parse_args()
    failed = False
    for kind in KINDS:
        if count := getattr(arguments, kind):
            tally = run_cases(kind, count, arguments.seed, arguments.jobs)
            print(tally.report(), flush=True)
            failed |= bool(tally.failures)
    if arguments.kills:
        print(kill_repeatedly(arguments.kills, arguments.seed, arguments.folder), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
