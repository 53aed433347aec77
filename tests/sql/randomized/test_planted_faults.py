"""Faults that are planted in the binder: random queries find each of them, and soon.

A fault that is not found within its number of queries says that the grammar draws too little of what it is
about. `docs/testing.md` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest
from sqlglot import exp

from bamquery.sql_frontend.binder.expressions import aggregates as binder_aggregates
from bamquery.sql_frontend.binder.expressions import subqueries as binder_subqueries
from bamquery.sql_frontend.binder.expressions.grouping_sets import terms_of_sets
from bamquery.sql_frontend.binder.expressions.row_values import compared_with_columns
from bamquery.sql_frontend.binder.queries import grouping_set_keys as binder_set_keys
from bamquery.sql_frontend.binder.queries import set_operation_branches as set_branches
from bamquery.sql_frontend.binder.queries import set_operation_order as binder_set_order
from bamquery.sql_frontend.functions import operators
from tests.sql.randomized.run import Database, Tally

_PER_DATABASE = 100

Plant = Callable[[pytest.MonkeyPatch], None]


def _last_branch(patch: pytest.MonkeyPatch) -> None:
    """ORDER BY behind a set operation looks for a name in the last SELECT first."""
    named = set_branches.named_position
    patch.setattr(binder_set_order, "named_position", lambda node, branches: named(node, branches[::-1]))


def _null_is_false(patch: pytest.MonkeyPatch) -> None:
    """A null that IN compares with is no match, where it leaves the answer open."""

    def compared(function: str, values: Sequence[Any], columns: Sequence[Any]) -> Any:
        if function != "equal":
            return compared_with_columns(function, values, columns)
        pairs = zip(values, columns, strict=True)
        tests = [operators.compare("is_not_distinct_from", one, other) for one, other in pairs]
        return tests[0] if len(tests) == 1 else operators.logical("and", tests)

    patch.setattr(binder_subqueries, "compared_with_columns", compared)


def _no_total(patch: pytest.MonkeyPatch) -> None:
    """Grouping sets lose the one without keys."""

    def terms(group: exp.Group) -> Any:
        sets = terms_of_sets(group)
        return [terms for terms in sets if terms] or sets

    patch.setattr(binder_set_keys, "terms_of_sets", terms)


def _wrong_end(patch: pytest.MonkeyPatch) -> None:
    """Quantiles of what is ordered from above count from below."""
    written = binder_aggregates.percentile

    def percentile(name: str, value: Any, *, descending: bool) -> Any:
        return written(name, value, descending=False)

    patch.setattr(binder_aggregates, "percentile", percentile)


def _order_upside_down(patch: pytest.MonkeyPatch) -> None:
    """NULLS FIRST within a call is NULLS LAST."""
    key = binder_aggregates.sort_key

    def sort_key(term: exp.Ordered, *rest: Any) -> Any:
        turned = term.copy()
        turned.set("nulls_first", False)
        return key(turned, *rest)

    patch.setattr(binder_aggregates, "sort_key", sort_key)


FAULTS: list[tuple[Plant, int]] = [
    (_last_branch, 400),
    (_null_is_false, 400),
    (_no_total, 100),
    (_wrong_end, 200),
    (_order_upside_down, 800),
]


def _asked_until_found(most: int) -> int:
    """How many queries it took; one more than `most` where none of them differs."""
    for seed in range(-(-most // _PER_DATABASE)):
        tally = Tally()
        with closing(Database(seed + 1)) as database:
            for number in range(min(_PER_DATABASE, most - seed * _PER_DATABASE)):
                database.ask(database.special.whole_query(), tally, number)
                if tally.failures:
                    return seed * _PER_DATABASE + number + 1
    return most + 1


@pytest.mark.parametrize(
    ("plant", "most"),
    [pytest.param(*fault, marks=pytest.mark.slow) if fault[1] > 400 else fault for fault in FAULTS],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_planted_fault_is_found(plant: Plant, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert _asked_until_found(most) <= most
