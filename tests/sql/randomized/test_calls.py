"""Calls of every function at the ends of types: a short run, and that it finds faults planted on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from bamquery.engine.cpu.aggregates import quantiles
from bamquery.engine.cpu.calendar import months_of
from bamquery.engine.cpu.strings import editing as texts
from bamquery.engine.cpu.strings import patterns
from bamquery.engine.cpu.temporal import instants
from tests.sql.randomized.casts.calls import run
from tests.sql.randomized.casts.known_calls import DOCUMENT, with_known_calls

CALLS: Final = 150

Plant = Callable[[pytest.MonkeyPatch], None]


def test_calls_are_answered_as_by_duckdb() -> None:
    tally = run(CALLS, seed=1)
    assert tally.failures == []
    assert tally.counts["alike"] > CALLS


def test_the_list_of_differences_is_that_of_the_page() -> None:
    page = DOCUMENT.read_text()
    assert with_known_calls(page) == page


def _wrapping(patch: pytest.MonkeyPatch) -> None:
    def subtracted(values: Any, others: Any, known: Any, what: str) -> Any:
        with np.errstate(over="ignore"):
            return values - others

    patch.setattr(instants, "subtract_checked", subtracted)


def _one_rank_further(patch: pytest.MonkeyPatch) -> None:
    ranks = quantiles.discrete_ranks
    patch.setattr(
        quantiles,
        "discrete_ranks",
        lambda q, counts: np.minimum(ranks(q, counts) + 1, np.maximum(counts - 1, 0)),
    )


def _without_options(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(patterns, "pattern_with", lambda pattern, options, name: pattern)


def _months_by_number(patch: pytest.MonkeyPatch) -> None:
    def whole_months(start: Any, end: Any, per_day: int) -> Any:
        return months_of(end // per_day) - months_of(start // per_day)

    patch.setattr(instants, "whole_months", whole_months)


def _places_from_zero(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(texts, "_bounds", lambda first, last: (first, last))
    patch.setattr(texts, "check_place", lambda name, column, place: None)


@pytest.mark.parametrize(
    ("plant", "names"),
    [
        (_wrapping, {"date_diff", "date_sub", "age"}),
        (_one_rank_further, {"quantile_disc", "quantile", "median"}),
        (_without_options, {"regexp_matches", "regexp_replace", "regexp_extract", "regexp_full_match"}),
        (_months_by_number, {"date_sub"}),
        (_places_from_zero, {"left", "right", "substring"}),
    ],
)
def test_a_planted_fault_is_found(plant: Plant, names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(CALLS // 5, seed=3, names=names).failures == []
    plant(monkeypatch)
    assert run(CALLS, seed=3, names=names, until_failure=True).failures
