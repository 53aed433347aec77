"""One case in a process of its own, whose memory another process looks at."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bamquery.connection.connection import Connection, connect
from bamquery.engine.execution.memory_budget import release_unused_memory
from bamquery.errors import BamQueryError
from bamquery.queries.memory.cases import LONG, Case
from bamquery.queries.memory.tables import text_batches

_SAMPLE_SECONDS: Final = 0.003
_WARM: Final = "SELECT g, count(*), max(x) FROM (VALUES (1, 'a'), (2, 'b')) t(g, x) GROUP BY g ORDER BY g"
_FAR_TOO_MUCH: Final = 8
"""Times the limit at which a process is ended, for the machine's sake."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a case.

    Attributes:
        growth: bytes of anonymous memory at most, less those of the idle engine.
        seconds: until it was over.
        outcome: "done", or why not.
    """

    case: Case
    growth: int
    seconds: float
    outcome: str

    def times_limit(self, limit: int) -> float:
        """The growth as a multiple of the limit."""
        return self.growth / limit


def measure(
    case: Case, database: Path, folder: Path, arguments: Sequence[str], *, limit: int, most_seconds: float
) -> Measured:
    """Run a case by `arguments`, a command line that calls `run_case`, on a copy of the database.

    Memory is looked at from outside, so that a call that holds Python's lock hides nothing. What counts is
    anonymous memory: pages of mapped files belong to the page cache, which gives them back when asked.
    """
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(database, copy, copy_function=_link_or_copy)
    command = [sys.executable, "-m", "bamquery", *arguments, "--run", str(copy), case.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if child.stdout.readline().strip() != "ready":
            raise SystemExit(f"{case.name}: the process ended before it began")
        idle = most = _anonymous(child.pid)
        began = time.monotonic()
        child.stdin.write("\n")
        child.stdin.flush()
        outcome = ""
        while child.poll() is None:
            most = max(most, _anonymous(child.pid))
            seconds = time.monotonic() - began
            if most - idle > _FAR_TOO_MUCH * limit or seconds > most_seconds:
                outcome = f"stopped after {seconds:.0f} s"
                child.kill()
                break
            time.sleep(_SAMPLE_SECONDS)
        seconds = time.monotonic() - began
        said = child.stdout.read().strip()
    if not outcome:
        outcome = json.loads(said)["outcome"] if said else f"ended by signal {-child.returncode}"
    shutil.rmtree(copy)
    return Measured(case, most - idle, seconds, outcome)


def run_case(case: Case, database: Path, settings: Mapping[str, Any], rows: Mapping[str, int]) -> None:
    """The process's part: say when the engine is idle, wait for a line, run, say how it went."""
    with connect(database, device="cpu", **settings) as connection:
        connection.execute(_WARM).fetchall()
        connection.execute("SHOW TABLES").fetchall()
        release_unused_memory()
        _say("ready")
        sys.stdin.readline()
        try:
            _WAYS[case.way](connection, case.text.format(folder=database.parent, long=LONG), rows)
            outcome = "done"
        except BamQueryError as error:
            outcome = f"{type(error).__name__}: {error}"
        _say(json.dumps({"outcome": outcome}))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _stream(connection: Connection, text: str, rows: Mapping[str, int]) -> None:
    for batch in connection.sql(text).to_batches():
        del batch


def _rows(connection: Connection, text: str, rows: Mapping[str, int]) -> None:
    relation = connection.sql(text)
    while relation.fetchmany(1000):
        pass


def _statement(connection: Connection, text: str, rows: Mapping[str, int]) -> None:
    connection.execute(text).fetchall()


def _load(connection: Connection, text: str, rows: Mapping[str, int]) -> None:
    connection.load("loaded", text)


def _append(connection: Connection, text: str, rows: Mapping[str, int]) -> None:
    connection.load("loaded", text_batches(rows[text]))


def _scan_registered(connection: Connection, text: str, rows: Mapping[str, int]) -> None:
    connection.register("stream", text_batches(rows[text]))
    connection.execute("SELECT max(w), count(*) FROM stream").fetchall()


_WAYS: Final[Mapping[str, Callable[[Connection, str, Mapping[str, int]], None]]] = {
    "stream": _stream,
    "rows": _rows,
    "statement": _statement,
    "load": _load,
    "append": _append,
    "registered": _scan_registered,
}


def _link_or_copy(source: str, target: str) -> None:
    """Files of a table are never changed once they are written; locks and the like are small."""
    if os.path.getsize(source) > 1 << 16:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def _anonymous(process: int) -> int:
    """Bytes of a process's memory that are not of files; 0 once it is gone."""
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("RssAnon:")), 0)
