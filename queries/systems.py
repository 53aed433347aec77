"""What can answer the questions: BamQuery and, over a Parquet copy of the same rows, others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bamquery.connection import Connection, connect
from bamquery.errors import BamQueryError
from bamquery.naming import suggestion
from bamquery.queries.baselines import BASELINES
from bamquery.queries.questions import LONG_MILES, Question


@dataclass(frozen=True)
class Io:
    """Bytes of one query: what it needed and what it read."""

    needed: int
    read: int
    amplification: float | None


@dataclass(frozen=True)
class Answer:
    """What a system says; `value` is None where no trip counts."""

    value: float | None
    io: Io | None = None


class System(Protocol):
    """Something that answers questions about one table."""

    @property
    def name(self) -> str:
        """As people call it."""
        ...

    @property
    def files(self) -> list[Path]:
        """What it reads, a file or folder each."""
        ...

    def open(self) -> None:
        """Get ready; what a program does once."""
        ...

    def ask(self, question: Question) -> Answer:
        """Run one query."""
        ...

    def count(self) -> int:
        """How many trips are long."""
        ...

    def close(self) -> None:
        """Give everything back, mapped files included."""
        ...


class BamQuerySystem:
    """BamQuery over one of its tables."""

    name = "BamQuery"

    def __init__(self, database: Path, table: str, settings: Mapping[str, object]) -> None:
        """Settings are those of `bamquery.connect`."""
        self.files = [database]
        self._table = table
        self._settings = settings
        self._connection: Connection | None = None

    def open(self) -> None:
        """Connect."""
        self._connection = connect(self.files[0], **self._settings)  # type: ignore[arg-type]

    def ask(self, question: Question) -> Answer:
        """Run one query and keep its profile's totals."""
        assert self._connection is not None, "opened first"
        relation = self._connection.sql(question.sql(self._table))
        value = relation.to_arrow().column(0)[0].as_py()
        io = relation.profile.io
        return Answer(value, Io(io.bytes_needed, io.bytes_read, io.amplification))

    def count(self) -> int:
        """Long trips."""
        assert self._connection is not None, "opened first"
        quoted = self._table.replace('"', '""')
        text = f'SELECT count(*) FROM "{quoted}" WHERE trip_distance >= {LONG_MILES}'  # noqa: S608 (quoted)
        count: int = self._connection.sql(text).to_arrow().column(0)[0].as_py()
        return count

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def baseline(name: str, parquet: Path) -> System:
    """One of BASELINES over a Parquet file.

    Raises:
        BamQueryError: there is no such baseline, or its library is not installed.
    """
    folded = name.strip().casefold()
    if folded not in BASELINES:
        raise BamQueryError(
            f'nothing called "{name}" to compare with, only {", ".join(BASELINES)}.'
            f"{suggestion(name, BASELINES)}"
        )
    try:
        importlib.import_module(folded)
    except ImportError as error:
        raise BamQueryError(
            f"comparing with {BASELINES[folded]} needs {folded}, which is not installed: "
            'pip install "bamquery[bench]"'
        ) from error
    module = importlib.import_module(f"bamquery.queries.baselines.{folded}")
    make: Callable[[Path], System] = module.System
    return make(parquet)
