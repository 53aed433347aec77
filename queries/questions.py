"""Q1 to Q5: what a driver makes per mile on long trips, each with one more charge taken off."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from bamquery.errors import CatalogError
from bamquery.text.identifiers import fold_case

LONG_MILES: Final = 30.0
AMOUNTS: Final = ("total_amount", "extra", "improvement_surcharge", "tolls_amount", "mta_tax")
COLUMNS: Final = ("trip_distance", *AMOUNTS)
NAMES: Final = ("q1", "q2", "q3", "q4", "q5")


@dataclass(frozen=True)
class Question:
    """One query.

    Attributes:
        name: q1 to q5.
        amounts: the total and what is taken off it.
        text: its SQL over the table `trips`, as in the file.
    """

    name: str
    amounts: tuple[str, ...]
    text: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it touches, the filter's first."""
        return ("trip_distance", *self.amounts)

    def sql(self, table: str) -> str:
        """The query over another table, without comments and the closing semicolon."""
        code = "\n".join(line for line in self.text.splitlines() if not line.startswith("--"))
        quoted = '"' + table.replace('"', '""') + '"'
        renamed, count = re.subn(r"\bFROM trips\b", lambda _: f"FROM {quoted}", code)
        assert count == 1, "the files name the table once"
        return renamed.rstrip().removesuffix(";")


@functools.cache
def question(name: str) -> Question:
    """The question of this name.

    Raises:
        CatalogError: there is none.
    """
    folded = fold_case(name.strip())
    if folded not in NAMES:
        raise CatalogError(f'there is no query "{name}", only {", ".join(NAMES)}')
    text = resources.files("bamquery.queries").joinpath("sql", f"{folded}.sql").read_text("utf-8")
    return Question(folded, AMOUNTS[: NAMES.index(folded) + 1], text)


def questions(names: Sequence[str] = NAMES) -> list[Question]:
    """Several questions, in the order given."""
    return [question(name) for name in names]
