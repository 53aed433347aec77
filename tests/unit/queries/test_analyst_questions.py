"""The analysts' questions, answered over the real trips of the sample as DuckDB answers them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import bamquery
from bamquery.errors import CatalogError
from bamquery.queries.analyst_questions import AnalystQuestion, analyst_question, analyst_questions
from bamquery.queries.sample import trip_files
from bamquery.queries.trips.loader import load
from bamquery.queries.trips.zones import load_zones
from bamquery.storage.database.database import Database

QUESTIONS = analyst_questions()


@pytest.fixture(scope="module")
def taxi(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[bamquery.Connection, duckdb.DuckDBPyConnection]]:
    path = tmp_path_factory.mktemp("taxi") / "taxi.bq"
    with Database.open(path) as database:
        load(database, trip_files())
        load_zones(database)
    with bamquery.connect(path, threads=2) as connection, duckdb.connect() as oracle:
        for name in ("trips", "zones"):
            oracle.register("given", connection.table(name).to_arrow())
            oracle.execute(f"CREATE TABLE {name} AS FROM given")
            oracle.unregister("given")
        yield connection, oracle


def same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(theirs, datetime.datetime) and isinstance(ours, datetime.datetime):
        return ours == theirs
    return ours == theirs


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_answers(
    taxi: tuple[bamquery.Connection, duckdb.DuckDBPyConnection], question: AnalystQuestion
) -> None:
    connection, oracle = taxi
    relation = connection.sql(question.sql)
    answer = oracle.sql(question.sql)
    assert [name.lower() for name in relation.columns] == [name.lower() for name in answer.columns]
    ours, theirs = relation.fetchall(), answer.fetchall()
    assert len(ours) == len(theirs) > 0
    for mine, right in zip(ours, theirs, strict=True):
        assert all(map(same, mine, right)), (mine, right)


def test_there_are_twenty_and_each_says_what_it_asks() -> None:
    assert [question.name[:2] for question in QUESTIONS] == [f"{n:02}" for n in range(1, 21)]
    assert all(question.words.endswith((".", "?")) for question in QUESTIONS)
    readme = Path(__file__).parents[3] / "docs" / "taxi.md"
    assert all(question.words.split("?")[0] in readme.read_text("utf-8") for question in QUESTIONS)


def test_names_and_numbers() -> None:
    assert analyst_question("07") is analyst_question("07_generous_hours")
    with pytest.raises(CatalogError, match="03_busiest_pickup_zones"):
        analyst_question("busiest_pickup_zones")
