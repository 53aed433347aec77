"""What each system can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from bamquery.errors import BamQueryError
from bamquery.queries.speed.comparing import Comparison
from bamquery.queries.speed.constants.substitutions import Constants
from bamquery.queries.speed.floors import Floor
from bamquery.queries.speed.suites import SpeedQuery

Run = Callable[[], pa.Table]


class RefusedError(BamQueryError):
    """A system says that it does not do this."""


@dataclass(frozen=True)
class Asked:
    """A query with constants.

    Attributes:
        query: which.
        sql: its text with the constants in it.
        constants: what was put into it, for who has a text of its own.
    """

    query: SpeedQuery
    sql: str
    constants: Constants


class System(Protocol):
    """A program with TPC-H's tables or trips, opened."""

    @property
    def name(self) -> str:
        """As tables show it, with what it has in mind of it: `Polars, frames`."""
        ...

    @property
    def version(self) -> str:
        """Of its library."""
        ...

    @property
    def data(self) -> str:
        """Where its tables lie when it is asked."""
        ...

    @property
    def queries(self) -> str:
        """What it is asked: our SQL, or functions of somebody's."""
        ...

    @property
    def comparison(self) -> Comparison:
        """How exactly its answers agree with others'."""
        ...

    def warm(self, questions: Sequence[Asked]) -> None:
        """Do what is done once, such as letting columns come in."""
        ...

    def prepare(self, asked: Asked) -> Run:
        """What is timed: from the text, or the function that is there, to the answer.

        Raises:
            RefusedError: the system does not do this; also what is returned raises it.
            BamQueryError: it fails.
        """
        ...

    def floor(self) -> Floor | None:
        """The least that the reads of the last answer take; None where nobody knows."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...
