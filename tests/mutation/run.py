"""Faults put into a room on purpose, one at a time: how many of them its tests find.

    python -m tests.mutation.run --room windows --mutants 150 --seeds 1 --jobs 16
    python -m tests.mutation.run --room windows --at engine/windows/frames.py:57    # those of one line

Tests are collected once. A first run, in a process for each job, sees which lines each test runs and for how
long; then each mutant gets a process of its own, forked off, in which the tests that run its line are run
until one fails, quick ones that have found others first. What no test finds survives, and is printed; what
equivalent.toml lists does not count.
"""

from __future__ import annotations

import argparse
import importlib
import mmap
import os
import pickle
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutants import REPOSITORY, Mutant, apply, list_mutants, module_name, record_lines
from tests.mutation.rooms import ROOMS, Room, equivalent_mutants

LEAST_SCORE = 90
_MEMORY = "/dev/shm"
_FOUND, _SURVIVED, _BROKEN = 1, 0, 3
_ONE_BY_ONE = 12
"""Tests that are picked for themselves; others stay beside those that share what their file sets up."""
_SHARED = struct.Struct("dq")
"""Of a process with the one that started it: its deadline, and the place of the test that it runs."""


@dataclass(frozen=True)
class Seen:
    """What the first run saw of a test."""

    passed: bool
    seconds: float
    """Of a processor, by all threads of the process."""
    lines: frozenset[tuple[str, int]]


class Child:
    """A process that was forked off to do something, and is killed where that takes too long."""

    def __init__(self, work: Callable[[Child], int], folder: Path) -> None:
        """Start it, with a folder of its own for all that is temporary."""
        self._shared = mmap.mmap(-1, _SHARED.size)
        self._folder = folder
        self.started = time.monotonic()
        _SHARED.pack_into(self._shared, 0, self.started + 3600, -1)
        folder.mkdir()
        self.process = os.fork()
        if not self.process:
            status = _BROKEN
            try:
                os.setsid()
                null = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(null, stream)
                os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
                tempfile.tempdir = None
                status = work(self)
            finally:
                os._exit(status)

    def begin(self, place: int, processor: float, patience: float) -> None:
        """It begins the test in a place: the seconds of a processor, and those that pass, until it is killed.

        What loops is stopped by the first, however busy the machine is; what waits by the second.
        """
        _SHARED.pack_into(self._shared, 0, time.monotonic() + patience, place)
        signal.setitimer(signal.ITIMER_PROF, processor)

    @property
    def place(self) -> int:
        """Of the last test that was begun; -1 before the first."""
        return int(_SHARED.unpack_from(self._shared)[1])

    def ended(self) -> int | None:
        """Its status once it has ended, or was killed: below zero then."""
        late = time.monotonic() > _SHARED.unpack_from(self._shared)[0]
        if late:
            os.killpg(self.process, signal.SIGKILL)
        process, status = os.waitpid(self.process, 0 if late else os.WNOHANG)
        if not process:
            return None
        shutil.rmtree(self._folder, ignore_errors=True)
        return os.waitstatus_to_exitcode(status)


class Plugin:
    """What pytest does once it has collected the room's tests."""

    def __init__(self, room: Room, arguments: argparse.Namespace, folder: Path) -> None:
        """Take what was asked for."""
        self._room = room
        self._arguments = arguments
        self._folder = folder
        self.score = 100.0
        """The least of all seeds."""

    def pytest_sessionstart(self) -> None:
        """No example is made smaller: that it fails is enough."""
        from hypothesis import Phase, settings  # after pytest, which rewrites it

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutation", settings.get_profile("house"), phases=phases)
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Look at all tests, then at each mutant."""
        files = self._room.files()
        for file in files:
            importlib.import_module(module_name(file))
        started = time.monotonic()
        seen = self._look(session.items, files)
        failed = [name for name, test in seen.items() if not test.passed]
        print(
            f"{len(seen)} tests in {time.monotonic() - started:.0f} s; {len(failed)} fail or are skipped by "
            "themselves and are left out",
            flush=True,
        )
        for name in failed:
            print(f"    {name}")
        if self._arguments.verbose:
            print(f"{sum(test.seconds for test in seen.values()):.0f} s of a processor, the longest:")
            for name in sorted(seen, key=lambda name: -seen[name].seconds)[:12]:
                print(f"    {seen[name].seconds:.1f} s {name}", flush=True)
        mutants = [mutant for file in files for mutant in list_mutants(file)]
        if self._arguments.at:
            chosen = [m for m in mutants if f"{m.file}:{m.line}:".startswith(self._arguments.at + ":")]
            self.score = self._try(session.items, chosen, seen)
            return True
        count = min(self._arguments.mutants, len(mutants))
        for seed in self._arguments.seeds:
            print(f"seed {seed}: {count} of {len(mutants)} mutants in {len(files)} files", flush=True)
            chosen = random.Random(seed).sample(mutants, count)
            self.score = min(self.score, self._try(session.items, chosen, seen))
        return True

    def _look(self, items: list[pytest.Item], files: list[str]) -> dict[str, Seen]:
        """Run every test once, in as many processes as there are jobs."""

        def look(share: list[pytest.Item], answer: Path, child: Child) -> int:
            hits: set[tuple[str, int]] = set()
            for file in files:
                record_lines(file, lambda line, file=file: hits.add((file, line)))  # type: ignore[misc]
            seen = {}
            for place, item in enumerate(share):
                hits.clear()
                begun = time.process_time()
                following = share[place + 1] if place + 1 < len(share) else None
                reports = runtestprotocol(item, log=False, nextitem=following)
                passed = all(report.passed for report in reports)
                seen[item.nodeid] = Seen(passed, time.process_time() - begun, frozenset(hits))
            answer.write_bytes(pickle.dumps(seen))
            return 0

        answers = [self._folder / f"seen-{job}" for job in range(self._arguments.jobs)]
        works = [
            partial(look, items[job :: self._arguments.jobs], answer) for job, answer in enumerate(answers)
        ]
        self._run(works, lambda job, status, child: None)
        return {name: test for answer in answers for name, test in pickle.loads(answer.read_bytes()).items()}

    def _try(self, items: list[pytest.Item], mutants: list[Mutant], seen: dict[str, Seen]) -> float:
        """The score: how many in a hundred of those are found that are not listed as equivalent."""
        equivalent = equivalent_mutants()
        counted = [mutant for mutant in mutants if mutant.key not in equivalent]
        ends: Counter[str] = Counter()
        ends["equivalent"] = len(mutants) - len(counted)
        choices = [_choose(mutant, items, seen) for mutant in counted]
        begun: Counter[str] = Counter()
        found: Counter[str] = Counter()

        def seconds_a_fault(item: pytest.Item) -> float:
            return seen[item.nodeid].seconds * (begun[item.nodeid] + 2) / (found[item.nodeid] + 1)

        def order(chosen: list[pytest.Item]) -> None:
            """First what finds much in little time, then file by file, as far as the time goes."""
            places = {id(item): place for place, item in enumerate(chosen)}
            files: Counter[Path] = Counter()
            for item in chosen:
                files[item.path] += seen[item.nodeid].seconds  # type: ignore[assignment]
            chosen.sort(key=seconds_a_fault)
            chosen[_ONE_BY_ONE:] = sorted(
                chosen[_ONE_BY_ONE:], key=lambda item: (files[item.path], item.path, places[id(item)])
            )
            ends = accumulate(seen[item.nodeid].seconds for item in chosen)
            del chosen[sum(end <= self._arguments.seconds for end in ends) + 1 :]

        def attempt(child: Child, *, mutant: Mutant, chosen: list[pytest.Item]) -> int:
            most = self._arguments.memory << 30
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            apply(mutant)
            for place, item in enumerate(chosen):
                own, patience = seen[item.nodeid].seconds, self._arguments.patience
                child.begin(place, patience + 5 * own, 5 * patience + 20 * own)
                following = chosen[place + 1] if place + 1 < len(chosen) else None
                if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                    return _FOUND
            return _SURVIVED

        def note(place: int, status: int, child: Child) -> None:
            mutant, chosen = counted[place], choices[place]
            end = {_FOUND: "found", _SURVIVED: "survived", _BROKEN: "broken"}.get(status, "hangs or dies")
            if end == "survived" and not chosen:
                end = "not run by any test"
            ends[end] += 1
            begun.update(item.nodeid for item in chosen[: child.place + 1])
            by = ""
            if end in {"found", "hangs or dies"}:
                found[chosen[child.place].nodeid] += 1
                by = f"\n        by {chosen[child.place].nodeid}"
            if self._arguments.verbose or end in {"survived", "broken", "not run by any test"}:
                print(f"{time.monotonic() - child.started:.1f} s, {end}: {mutant}{by}", flush=True)

        def works() -> Iterator[Callable[[Child], int]]:
            for mutant, chosen in zip(counted, choices, strict=True):
                order(chosen)
                yield partial(attempt, mutant=mutant, chosen=chosen)

        self._run(works(), note)
        score = 100 * (ends["found"] + ends["hangs or dies"]) / max(len(counted), 1)
        print(", ".join(f"{count} {end}" for end, count in ends.most_common()))
        print(f"score {score:.1f} %", flush=True)
        return score

    def _run(self, works: Iterable[Callable[[Child], int]], note: Callable[[int, int, Child], None]) -> None:
        """Do all of it in processes, as many at a time as there are jobs."""
        waiting = enumerate(works)
        running: dict[int, Child] = {}
        while True:
            while len(running) < self._arguments.jobs and (following := next(waiting, None)) is not None:
                place, work = following
                running[place] = Child(work, self._folder / f"work-{place}")
            if not running:
                return
            time.sleep(0.005)
            for place, child in list(running.items()):
                if (status := child.ended()) is not None:
                    del running[place]
                    note(place, status, child)


def _choose(mutant: Mutant, items: list[pytest.Item], seen: dict[str, Seen]) -> list[pytest.Item]:
    """The tests that run its statement and pass."""
    spot = (mutant.file, mutant.statement)
    return [item for item in items if seen[item.nodeid].passed and spot in seen[item.nodeid].lines]


def main() -> int:
    """Run one room; the status is 1 below the least score."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.run")
    parser.add_argument("--room", choices=ROOMS, required=True)
    parser.add_argument("--mutants", type=int, default=150, help="how many are drawn")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of draws, each with a score")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--at", help="FILE:LINE, whose mutants are tried, or FILE for all of it")
    parser.add_argument("--tests", nargs="+", help="these instead of the room's, such as a test just written")
    parser.add_argument(
        "--patience", type=float, default=3, help="seconds of a processor that a test may take beyond its own"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60,
        help="of a processor, for the tests of one fault, where none fails",
    )
    parser.add_argument("--memory", type=int, default=16, help="GiB of addresses of a process")
    parser.add_argument("--verbose", action="store_true", help="print those that are found, too")
    arguments = parser.parse_args()
    room = ROOMS[arguments.room]
    os.chdir(REPOSITORY)
    in_memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None  # where nothing waits for a sync
    with tempfile.TemporaryDirectory(prefix="mutation-", dir=in_memory) as folder:
        plugin = Plugin(room, arguments, Path(folder))
        options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not gpu"]
        status = pytest.main([*options, *(arguments.tests or room.tests)], plugins=[plugin])
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        return int(status)
    return int(plugin.score < LEAST_SCORE)


if __name__ == "__main__":
    sys.exit(main())
