"""The queries that `bamquery bench sql` asks: three suites of SQL files that come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Final

from bamquery.errors import CatalogError
from bamquery.queries.analyst_questions import analyst_questions
from bamquery.queries.questions import questions
from bamquery.text.identifiers import suggestion

SUITES: Final = ("tpch", "taxi", "analyst")
TPCH_TABLES: Final = (
    "region",
    "nation",
    "supplier",
    "customer",
    "part",
    "partsupp",
    "orders",
    "lineitem",
)


@dataclass(frozen=True)
class SpeedQuery:
    """One query.

    Attributes:
        suite: one of SUITES.
        name: of its file, such as `01_pricing_summary`.
        sql: over the tables of TPC-H, or over `trips` and `zones`.
    """

    suite: str
    name: str
    sql: str


def suite_queries(suite: str) -> tuple[SpeedQuery, ...]:
    """The queries of a suite, in the order of their names.

    Raises:
        CatalogError: there is no such suite.
    """
    if suite == "tpch":
        folder = resources.files("bamquery.queries").joinpath("tpch")
        files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda file: file.name)
        return tuple(SpeedQuery(suite, f.name.removesuffix(".sql"), f.read_text("utf-8")) for f in files)
    if suite == "taxi":
        return tuple(SpeedQuery(suite, q.name, q.sql("trips")) for q in questions())
    if suite == "analyst":
        return tuple(SpeedQuery(suite, q.name, q.sql) for q in analyst_questions())
    raise CatalogError(f'there is no suite "{suite}", only {", ".join(SUITES)}.{suggestion(suite, SUITES)}')


def chosen_queries(suites: tuple[str, ...], names: tuple[str, ...]) -> tuple[SpeedQuery, ...]:
    """Queries of suites; where names are given only those, each a name or its beginning (`tpch/03`).

    Raises:
        CatalogError: a name fits no query.
    """
    found = tuple(query for suite in suites for query in suite_queries(suite))
    for name in names:
        if not any(_fits(query, name) for query in found):
            known = [f"{query.suite}/{query.name}" for query in found]
            raise CatalogError(f'there is no query "{name}".{suggestion(name, known)}')
    return tuple(q for q in found if not names or any(_fits(q, name) for name in names))


def _fits(query: SpeedQuery, name: str) -> bool:
    return f"{query.suite}/{query.name}".startswith(name) or query.name.startswith(name)
