"""Constants that change: each fits its text, lies in its range, and asks something that runs."""

from __future__ import annotations

from random import Random

import pytest

from bamquery.errors import BamQueryError
from bamquery.queries.speed.constants.replacements import replace_pieces
from bamquery.queries.speed.constants.substitutions import draw_constants
from bamquery.queries.speed.measure import questions
from bamquery.queries.speed.suites import SpeedQuery, suite_queries
from bamquery.queries.speed.systems.pdsh import Pdsh

TPCH = suite_queries("tpch")


@pytest.mark.parametrize("query", TPCH, ids=lambda query: query.name)
def test_every_draw_fits_its_text(query: SpeedQuery) -> None:
    texts = set()
    for seed in range(20):
        constants = draw_constants(query.name, Random(seed), 1.0)
        text = replace_pieces(query.sql, constants.sql)
        texts.add(text)
        assert text.count("\n") == query.sql.count("\n")
    assert len(texts) > 3


def drawn(number: int, seed: int, scale: float = 1.0) -> dict[str, str]:
    return dict(draw_constants(TPCH[number - 1].name, Random(seed), scale).sql)


def test_ranges() -> None:
    seeds = range(300)
    assert {drawn(18, seed)["> 300"] for seed in seeds} == {f"> {n}" for n in range(312, 316)}
    assert {drawn(6, seed)["0.06"] for seed in seeds} == {f"0.0{n}" for n in range(2, 10)}
    months = {drawn(4, seed)["'1993-07-01'"] for seed in range(2000)}
    assert (min(months), max(months), len(months)) == ("'1993-01-01'", "'1997-10-01'", 58)
    months = {drawn(10, seed)["'1993-10-01'"] for seed in range(2000)}
    assert (min(months), max(months), len(months)) == ("'1993-02-01'", "'1995-01-01'", 24)
    nations = [drawn(7, seed) for seed in seeds]
    assert all(one["'FRANCE'"] != one["'GERMANY'"] for one in nations)
    assert any(one["'FRANCE'"] == "'GERMANY'" for one in nations)


@pytest.mark.parametrize(("scale", "fraction"), [(0.1, "0.001"), (1, "0.0001"), (100, "0.000001")])
def test_the_fraction_follows_the_scale(scale: float, fraction: str) -> None:
    assert drawn(11, 1, scale)["0.0001"] == fraction


def test_pieces_are_replaced_at_once() -> None:
    assert replace_pieces("a b ab", {"a": "b", "b": "a", "ab": "c"}) == "b a c"
    assert replace_pieces("text", {}) == "text"
    with pytest.raises(BamQueryError, match="there is no y and no q to put another constant for"):
        replace_pieces("text z", {"y": "1", "z": "2", "q": "3"})


def test_questions() -> None:
    query = TPCH[5]
    same = questions(query, 3, 1.0, None)
    assert [asked.sql for asked in same] == [query.sql] * 4
    changed = questions(query, 3, 1.0, 1)
    assert changed[0].sql == query.sql
    assert len({asked.sql for asked in changed}) == 4
    assert changed == questions(query, 3, 1.0, 1)
    assert changed != questions(query, 3, 1.0, 2)
    for one in TPCH:
        assert len({asked.sql for asked in questions(one, 4, 1.0, 1)}) == 5
    trips = SpeedQuery("taxi", "q1", "SELECT 1")
    assert {asked.sql for asked in questions(trips, 3, 1.0, 1)} == {"SELECT 1"}


def test_every_draw_fits_pdsh() -> None:
    pdsh = Pdsh.find()
    if pdsh is None:
        pytest.skip("cudf-polars is not installed")
    for query in TPCH:
        for seed in range(5):
            replace_pieces(pdsh.function(query.name), draw_constants(query.name, Random(seed), 1.0).python)
