"""kill -9 of processes that write, again and again; a ledger says what must be there after each."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import bamquery
from tests.fuzz.ledger_writer import SHARED, State, batch_rows

WRITERS = ("p", "q")
_DEADLINE_SECONDS = 120.0


@dataclass
class Ledger:
    """What the writers have said so far.

    Attributes:
        known: of each writer, what its tables held when last looked at, or when it had done a change.
        maybe: of each writer, what they hold where the change that it had begun was made.
        ended: batches that were acknowledged to be in the table that all share.
        begun: batches that may be there.
    """

    known: dict[str, State] = field(default_factory=lambda: {name: {} for name in WRITERS})
    maybe: dict[str, State | None] = field(default_factory=lambda: dict.fromkeys(WRITERS))
    ended: set[int] = field(default_factory=set)
    begun: set[int] = field(default_factory=set)
    acknowledged: int = 0

    def hear(self, writer: str, text: str) -> None:
        """Take in lines of a writer's; the last may be half a line."""
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            said = json.loads(line)
            done = said["kind"] == "end"
            self.acknowledged += done
            if "batch" in said:
                (self.ended if done else self.begun).add(said["batch"])
                # One that lost to another writer was begun and is over.
            elif done:
                self.known[writer], self.maybe[writer] = said["state"], None
            else:
                self.maybe[writer] = said["state"]


def held(con: bamquery.Connection, table: str) -> list[int]:
    """The batches in a table, each whole."""
    counted = con.sql(
        f"SELECT batch, count(*) AS rows, count(DISTINCT n) AS different, max(n) AS last, "
        f"count(*) FILTER (s = 'text ' || n) AS fitting FROM {table} GROUP BY batch"
    ).fetchall()
    for batch, rows, different, last, fitting in counted:
        whole = batch_rows(batch)
        assert (rows, different, last, fitting) == (whole, whole, whole - 1, whole), (
            f"batch {batch} of {table} is half there, or double: {rows} rows, {different} different"
        )
    return sorted(batch for batch, *_ in counted)


def verify(path: Path, ledger: Ledger) -> None:
    """Look at all tables: what was acknowledged is there, what was begun is there wholly or not at all."""
    with bamquery.connect(path) as con:
        report = con.check()
        assert report.clean, report.errors
        tables = {name: held(con, name) for name in con.tables}
        before = {name: con.sql(f"SELECT count(*) FROM {name}").fetchall() for name in tables}
        con.execute("VACUUM")
        after = con.check()
        assert after.clean, after.errors
        assert not after.litter, after.litter
        assert before == {name: con.sql(f"SELECT count(*) FROM {name}").fetchall() for name in con.tables}
    shared = set(tables.pop(SHARED, []))
    assert shared >= ledger.ended, f"acknowledged and lost: {sorted(ledger.ended - shared)}"
    assert shared <= ledger.ended | ledger.begun, f"never begun: {shared - ledger.ended - ledger.begun}"
    ledger.ended = shared
    for writer in WRITERS:
        found = {name: batches for name, batches in tables.items() if name.startswith(writer)}
        known = {name: sorted(batches) for name, batches in ledger.known[writer].items()}
        maybe = ledger.maybe[writer]
        allowed = [known] if maybe is None else [known, {n: sorted(b) for n, b in maybe.items()}]
        assert found in allowed, f"tables of {writer} hold {found}, which is none of {allowed}"
        ledger.known[writer], ledger.maybe[writer] = found, None


def kill_repeatedly(kills: int, seed: int, folder: Path | None = None) -> str:
    """Start two writers, kill them, look at the database; until so many were killed. What was done, as text.

    Raises:
        AssertionError: something was lost, double or half; or a writer gave up by itself.
    """
    if folder is None:
        with TemporaryDirectory() as made:
            return _kill_repeatedly(kills, seed, Path(made))
    folder.mkdir(parents=True)
    return _kill_repeatedly(kills, seed, folder)


def _kill_repeatedly(kills: int, seed: int, folder: Path) -> str:
    luck, ledger, started = random.Random(seed), Ledger(), time.monotonic()
    path, read = folder / "db", dict.fromkeys(WRITERS, 0)
    done = 0
    waiting = _start(folder, luck)
    try:
        while done < kills:
            running = waiting
            for writer, process in running.items():
                assert process.stdout is not None
                assert process.stdin is not None
                assert process.stdout.readline() == "ready\n", f"writer {writer} does not start"
                process.stdin.write(json.dumps(ledger.known[writer]) + "\n")
                process.stdin.flush()
            if luck.random() < 0.7:  # the others are killed wherever they are
                _await_lines(folder, read, luck.randrange(1, 2500))
            time.sleep(luck.uniform(0, 0.2))
            alive = [process.poll() is None for process in running.values()]
            _kill(running)
            assert all(alive), "a writer gave up by itself; its error is above"
            done += len(running)
            waiting = _start(folder, luck) if done < kills else {}
            for writer in WRITERS:
                text = _text(folder, writer)[read[writer] :]
                ledger.hear(writer, text)
                read[writer] += len(text)
            if path.exists():
                verify(path, ledger)
    finally:
        _kill(waiting)
    seconds = time.monotonic() - started
    return (
        f"kills: {done} processes killed, {ledger.acknowledged} changes acknowledged, none lost, double or "
        f"half; {done / seconds:.1f} a second"
    )


def _start(folder: Path, luck: random.Random) -> dict[str, subprocess.Popen[str]]:
    return {
        writer: subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.fuzz.ledger_writer"),
                *(str(folder / "db"), str(folder / writer), writer, str(luck.randrange(1 << 60))),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for writer in WRITERS
    }


def _text(folder: Path, writer: str) -> str:
    path = folder / writer
    return path.read_text() if path.exists() else ""


def _await_lines(folder: Path, read: dict[str, int], characters: int) -> None:
    """Wait until the writers have said so much more."""
    end = time.monotonic() + _DEADLINE_SECONDS
    before = sum(read.values())
    while sum(len(_text(folder, writer)) for writer in WRITERS) < before + characters:
        assert time.monotonic() < end, "the writers commit nothing"
        time.sleep(0.01)


def _kill(processes: dict[str, subprocess.Popen[str]]) -> None:
    for process in processes.values():
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
