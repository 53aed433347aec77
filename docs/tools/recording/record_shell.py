"""Records docs/images/shell.svg: the shell in a terminal, typed into, and every screen that it shows.

    python -m docs.tools.recording.record_shell

from the repository's root. The database is made of the sample of taxi trips that BamQuery ships; all that is
to be seen comes from the run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import bamquery
from docs.tools.recording.svg import Frame, frame, svg
from tests.unit.face.shell.terminal import CTRL_C, CTRL_D, ENTER, RIGHT, TAB, Terminal

_COLUMNS: Final = 96
_LINES: Final = 26
_KEY: Final = 0.045
_PAUSE: Final = 1.6
_SAMPLE: Final = "bamquery/queries/sample/yellow_2015-01_head.parquet"


class Recording:
    """Types into a shell and keeps its screens."""

    def __init__(self, shell: Terminal) -> None:
        self._shell = shell
        self.frames: list[Frame] = []

    def keep(self, seconds: float) -> None:
        """The screen as it is, for some seconds."""
        self.frames.append(frame(self._shell.screen, seconds))

    def settle(self, seconds: float = 0.4) -> None:
        """Read until nothing more comes."""
        while True:
            before = len(self._shell.raw)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                self._shell.read(0.05)
            if len(self._shell.raw) == before:
                return

    def type(self, text: str) -> None:
        """Words as somebody types them: a screen for every five letters."""
        for start in range(0, len(text), 5):
            self._shell.send(text[start : start + 5])
            self.settle(0.12)
            self.keep(5 * _KEY)

    def press(self, key: str, seconds: float = 0.5) -> None:
        """A key, and the screen that it makes."""
        self._shell.send(key)
        self.settle()
        self.keep(seconds)

    def answer(self, pattern: str, seconds: float = _PAUSE) -> None:
        """Run what was typed, and look at what comes."""
        self._shell.send(ENTER)
        self._shell.wait(pattern)
        self._shell.prompt()
        self.settle()
        self.keep(seconds)


def record(database: Path, home: Path) -> list[Frame]:
    """What is to be seen."""
    environment = {"HOME": str(home), "COLORFGBG": "15;0"}
    with Terminal(
        ["-m", "bamquery", database.name],
        columns=_COLUMNS,
        lines=_LINES,
        environment=environment,
        cwd=database.parent,
    ) as shell:
        recording = Recording(shell)
        shell.prompt()
        shell.wait("thread")
        recording.settle()
        recording.keep(1.0)
        recording.type("select payment_type, avg(tip")
        recording.press(TAB, 1.2)
        recording.type(" / fare_amount) from tr")
        recording.press(TAB, 0.8)
        recording.type(" where trip_distance > 10 and fare_amount > 0 group by all;")
        recording.answer(r"rows? \(.*amplification", 2.6)
        recording.type("select avg(trip_distanse) from trips;")
        recording.answer("Did you mean", 2.4)
        recording.type("from trips;")
        shell.send(ENTER)
        shell.wait("q: leave")
        recording.settle()
        recording.keep(_PAUSE)
        for _ in range(6):
            recording.press(RIGHT, 0.25)
        recording.press(" ", 0.8)
        recording.press("q", 1.0)
        recording.type("select count(*) from trips a, trips b where a.fare_amount > b.fare_amount + 1;")
        shell.send(ENTER)
        shell.wait("Running")
        for _ in range(10):
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                shell.read(0.05)
            recording.keep(0.3)
        shell.send(CTRL_C)
        shell.wait("cancelled")
        shell.prompt()
        recording.settle()
        recording.keep(2.5)
        shell.send(CTRL_D)
        shell.end()
        return recording.frames


def main() -> None:
    """Write the picture."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/shell.svg")
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "taxi.bq"
        with bamquery.connect(database) as connection:
            connection.load("sample", _SAMPLE)
            connection.sql("CREATE TABLE trips AS SELECT s.* FROM sample s, range(300)")
            connection.sql("DROP TABLE sample")
        frames = record(database, Path(folder))
    target.parent.mkdir(parents=True, exist_ok=True)
    title = "BamQuery's shell: completion, an answer, a mistake, a wide table, a query that is stopped"
    target.write_text(svg(frames, _COLUMNS, _LINES, title), encoding="utf-8")


if __name__ == "__main__":
    main()
