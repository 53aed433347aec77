"""What can answer the questions: BamQuery and, over a Parquet copy of the same rows, others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bamquery.connection.connection import Connection, connect
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.errors import BamQueryError
from bamquery.queries.baselines import BASELINES
from bamquery.queries.questions import LONG_MILES, Question
from bamquery.text.identifiers import suggestion


@dataclass(frozen=True)
class Io:
    """Bytes of one query: what it needed and what it read."""

    needed: int
    read: int
    amplification: float | None


@dataclass(frozen=True)
class Answer:
    """What a system says; `value` is None where no trip counts. Only BamQuery says what it did for that."""

    value: float | None
    io: Io | None = None
    profile: QueryProfile | None = None


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

    def bytes_moved(self, question: Question) -> int | None:
        """Bytes that an answer moves from files or host memory; None where it cannot be known.

        Asked after a question was timed, while the system is open.
        """
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
        self._read: dict[str, int] = {}
        self.device = ""
        """Where the last query ran."""
        self.notes: tuple[str, ...] = ()
        """What its profile says of the choice and of what did not run as asked."""

    def open(self) -> None:
        """Connect."""
        settings: Any = {"gpu_cache_limit": 0, **self._settings}  # each run reads what it needs
        self._connection = connect(self.files[0], **settings)

    def ask(self, question: Question) -> Answer:
        """Run one query and keep its profile's totals."""
        assert self._connection is not None, "opened first"
        relation = self._connection.sql(question.sql(self._table))
        value = relation.to_arrow().column(0)[0].as_py()
        profile = relation.profile
        io = profile.io
        self.device, self.notes = profile.device, tuple(profile.notes)
        self._read[question.name] = io.bytes_read
        return Answer(value, Io(io.bytes_needed, io.bytes_read, io.amplification), profile)

    def bytes_moved(self, question: Question) -> int:
        """Bytes of all completed read commands, as the profile has them."""
        return self._read[question.name]

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
    """One of BASELINES over a Parquet file, or a folder of such files.

    Raises:
        BamQueryError: there is no such baseline, or its library is not installed, or it cannot be used.
    """
    folded = name.strip().casefold()
    if folded not in BASELINES:
        raise BamQueryError(
            f'nothing called "{name}" to compare with, only {", ".join(BASELINES)}.'
            f"{suggestion(name, BASELINES)}"
        )
    found = BASELINES[folded]
    for library in found.libraries:
        try:
            importlib.import_module(library)
        except ImportError as error:
            raise BamQueryError(
                f"comparing with {found.label} needs {library}, which is not installed"
                f"{' for an NVIDIA GPU' if found.gpu else ''}: "
                f'pip install "bamquery[{found.extra}]"'
            ) from error
        except Exception as error:
            if not found.gpu:
                raise
            # cuDF looks for a GPU when it is imported, and raises what CUDA says.
            raise BamQueryError(
                f"comparing with {found.label} needs an NVIDIA GPU that {library} can use: {error}"
            ) from error
    module = importlib.import_module(f"bamquery.queries.baselines.{found.module}")
    make: Callable[[Path], System] = module.System
    return make(parquet)
