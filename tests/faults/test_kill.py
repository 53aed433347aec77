"""kill -9 at random moments, of two processes at once that write to the same tables."""

import json
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from bamquery.storage.database.database import Database
from tests.faults.killed_writer import digest, read_ids
from tests.selection.effort import effort

SCRIPT = Path(__file__).parent / "killed_writer.py"


def start(path, log, seed):
    """A process that has loaded everything and waits for its turn."""
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(path), str(log), str(seed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(processes):
    for process in processes:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


class Claims:
    """What the processes said of each version of each table: which contents it may, and must, have."""

    def __init__(self):
        self.begun = defaultdict(set)
        self.ended = {}

    def read(self, log):
        for line in log.read_text().splitlines():
            claim = json.loads(line)
            key = claim["table"], claim["version"]
            if claim["kind"] == "begin":
                self.begun[key].add((claim["digest"], claim["sorted"]))
            else:
                assert self.ended.setdefault(key, claim["digest"]) == claim["digest"], (
                    f"{key} was committed twice"
                )

    def acknowledged(self, table):
        return max((version for name, version in self.ended if name == table), default=0)

    def possible(self, table, version):
        """(digest, digest when sorted) of every content that this version may have."""
        found = set()
        for number in range(1, version + 1):
            # OPTIMIZE makes versions too, of the rows of the version before, in their order or sorted.
            found |= {(by_id, by_id) for _, by_id in found}
            begun = self.begun[table, number]
            if (table, number) in self.ended:
                found = {claim for claim in begun if claim[0] == self.ended[table, number]}
            else:
                found |= begun
        return {content for content, _ in found}


def verify(path, claims):
    with Database.open(path) as database:
        report = database.check()
        assert not report.errors, report.errors
        assert not report.unknown, report.unknown
        assert set(database.table_names()) <= {"a", "b"}
        before = {name: read(database, name, claims) for name in database.table_names()}
        for name in "ab":
            assert name in before or claims.acknowledged(name) == 0, f"table {name} is gone"
        # Nobody is alive, so vacuum leaves the latest versions and nothing else.
        assert database.vacuum().in_use == []
        after = database.check()
        assert after.clean
        assert after.litter == []
        assert after.versions == len(before)
        assert {name: read(database, name, claims) for name in before} == before


def read(database, name, claims):
    with database.table(name).snapshot() as snapshot:
        content = digest(read_ids(snapshot))
        assert snapshot.version >= claims.acknowledged(name), "a commit that had returned is lost"
        assert content in claims.possible(name, snapshot.version), f"no version of {name} was ever that"
        return snapshot.version, content


def await_claims(logs, size, deadline_seconds=60.0):
    """Wait until the logs hold that many bytes: a claim takes some 120."""
    end = time.monotonic() + deadline_seconds
    while sum(log.stat().st_size for log in logs) < size:
        assert time.monotonic() < end, "the processes commit nothing"
        time.sleep(0.001)


def kill_repeatedly(tmp_path, times):
    luck = random.Random(times)
    path = tmp_path / "db"
    logs = [tmp_path / "log0", tmp_path / "log1"]
    for log in logs:
        log.touch()
    commits = rounds = 0
    waiting = [start(path, log, luck.randrange(2**60)) for log in logs]
    try:
        while rounds < times:
            rounds += 1
            running = waiting
            for process in running:
                assert process.stdout.readline() == "ready\n"
            said = sum(log.stat().st_size for log in logs)
            for process in running:
                process.stdin.write("go\n")
                process.stdin.flush()
            # Every other round kills whatever they are at; the rest wait until there is something to lose,
            # which a busy machine would seldom have in the same time.
            if rounds % 2:
                await_claims(logs, said + luck.randrange(1, 3000))
            time.sleep(luck.uniform(0, 0.3))
            alive = [process.poll() is None for process in running]
            kill(running)
            assert all(alive), "a process gave up on its own"
            waiting = [start(path, log, luck.randrange(2**60)) for log in logs]
            claims = Claims()
            for log in logs:
                claims.read(log)
            commits = len(claims.ended)
            if path.exists():
                verify(path, claims)
    finally:
        kill(waiting)
    return commits


@pytest.mark.long
def test_kill_at_random_moments(tmp_path):
    times = effort(8, 300)
    assert kill_repeatedly(tmp_path, times) > times
