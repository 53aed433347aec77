"""The keys of grouping sets: each selected column that GROUP BY names is one, whatever equals it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.sql_frontend.binder.expressions.aggregates import Sets
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.expressions.grouping_sets import Terms, terms_in_order, terms_of_sets
from bamquery.sql_frontend.binder.queries.select_terms import check_aliases, check_groupable, item_at, ordinal
from bamquery.sql_frontend.binder.scope import SelectAliases
from bamquery.sql_frontend.fault_collection import FaultCollector, errors_at
from bamquery.sql_frontend.functions.coercion import decode
from bamquery.sql_frontend.functions.operators import literal

Selected = exp.Expr | ColumnRef | None
"""A selected column: the expression as written, what * stands for, or None where that is wrong."""


@dataclass(frozen=True)
class GroupingSetKeys:
    """Keys of grouping sets.

    Attributes:
        keys: some may be equal: grouped by a and b, `5 AS a, 5 AS b` are null in different sets.
        sets: positions of keys.
        selected: for each key the selected expression that names it, None for one that stands in GROUP BY.
    """

    keys: Sequence[Expression] = ()
    sets: Sets = ()
    selected: Sequence[exp.Expr | None] = ()


def bind_set_keys(
    group: exp.Group,
    items: Sequence[Selected],
    aliases: SelectAliases,
    binder: ExpressionBinder,
    faults: FaultCollector,
) -> GroupingSetKeys:
    """The keys and sets of a GROUP BY with several sets; what is wrong goes to `faults`.

    `items` are what positions mean, `binder` is that of GROUP BY.
    """
    written: list[Terms] = [()]
    with faults.collect(), errors_at(binder.sql, group):
        written = terms_of_sets(group)
    keys: dict[Hashable, tuple[Expression, exp.Expr | None]] = {}
    places: dict[int, int] = {}
    for term in terms_in_order(group):
        with faults.collect():
            with errors_at(binder.sql, term):
                item, selected = _resolve_term(term, items, aliases, binder)
            key = _bind_item(item, binder)
            name: Hashable = id(selected) if selected is not None else key
            keys.setdefault(name, (key, selected))
            places[id(term)] = list(keys).index(name)
    sets = [tuple(sorted({places[id(term)] for term in terms if id(term) in places})) for terms in written]
    return GroupingSetKeys(
        [key for key, _ in keys.values()], sets, [selected for _, selected in keys.values()]
    )


def _resolve_term(
    term: exp.Expr, items: Sequence[Selected], aliases: SelectAliases, binder: ExpressionBinder
) -> tuple[Selected, exp.Expr | None]:
    """What is grouped by, and the same again where a position or an alias means what is selected."""
    position = ordinal(term)
    if position is not None:
        item = item_at(items, position, "GROUP BY")
        selected = item if isinstance(item, exp.Expr) else None
        check_groupable(selected)
        return item, selected
    check_aliases(term, binder.scope, aliases)
    column = term.unnest()
    if isinstance(column, exp.Column) and not (column.table or isinstance(column.this, exp.Star)):
        aliased = None if binder.scope.find(column.name) is not None else aliases.find(column.name)
        if aliased is not None:
            return aliased, aliased
    return term, None


def _bind_item(item: Selected, binder: ExpressionBinder) -> Expression:
    if item is None:
        return literal(None, pa.null())
    return decode(item if isinstance(item, ColumnRef) else binder.bind(item))
