"""Twenty questions that analysts ask of trips and zones, as SQL files of `queries/analyst`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources

from bamquery.errors import CatalogError
from bamquery.text.identifiers import suggestion


@dataclass(frozen=True)
class AnalystQuestion:
    """One of them.

    Attributes:
        name: of its file, such as `01_trips_by_hour`.
        words: the question.
        sql: over the tables `trips` and `zones`, which `bamquery taxi load` makes.
    """

    name: str
    words: str
    sql: str


@functools.cache
def analyst_questions() -> tuple[AnalystQuestion, ...]:
    """All, in the order of their names."""
    folder = resources.files("bamquery.queries").joinpath("analyst")
    found = []
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            words, _, sql = file.read_text("utf-8").partition("\n")
            found.append(AnalystQuestion(file.name.removesuffix(".sql"), words.removeprefix("-- "), sql))
    return tuple(found)


def analyst_question(name: str) -> AnalystQuestion:
    """The one of this name, or of its number alone.

    Raises:
        CatalogError: there is none; suggests the nearest name.
    """
    for question in analyst_questions():
        if name in (question.name, question.name[:2]):
            return question
    known = [question.name for question in analyst_questions()]
    raise CatalogError(f'there is no question "{name}".{suggestion(name, known)}')
