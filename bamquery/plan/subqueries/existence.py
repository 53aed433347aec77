"""Whether rows exist for each row outside, asked by a condition on pairs of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal, transform
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import Filter, Plan
from bamquery.plan.rewriting import conjunction, conjuncts
from bamquery.plan.subqueries.dependent_joins import (
    has_outer_columns,
    is_correlated,
    outer_equality,
    replace_outer_columns,
)


def rows_and_condition(
    plan: Plan, outside: Sequence[Expression], width: int
) -> tuple[Plan, Expression] | None:
    """Rows that are the same for all rows outside, and the condition, never null, under which one counts.

    None where the query takes columns from outside elsewhere than in its last filter, or is not compared
    with any of them: then nothing would find its rows.

    Args:
        plan: the query; the k-th column from outside is numbered -1 - k.
        outside: what those columns are, over the rows outside.
        width: columns of the rows outside, which come before the query's in the condition.
    """
    if not isinstance(plan, Filter) or is_correlated(plan.child):
        return None
    own: list[Expression] = []
    pairs: list[Expression] = []
    compared = False
    for conjunct in conjuncts(plan.predicate):
        if not has_outer_columns(conjunct):
            own.append(conjunct)
            continue
        found = outer_equality(conjunct)
        if found is None:
            moved = replace_outer_columns(shift_columns(conjunct, width), outside)
            pairs.append(Call("coalesce", (moved, Literal(scalar(False, pa.bool_()))), pa.bool_()))
            continue
        number, value, nulls_equal = found
        if value.type != outside[number].type:
            return None
        compared = True
        pairs.append(Call("is_not_distinct_from", (outside[number], shift_columns(value, width)), pa.bool_()))
        if not nulls_equal:
            own.append(Call("is_not_null", (value,), pa.bool_()))
    if not compared:
        return None
    return (Filter(plan.child, conjunction(own)) if own else plan.child), conjunction(pairs)


def shift_columns(expression: Expression, by: int) -> Expression:
    """The expression with its columns, not those from outside, `by` places further."""

    def shift_column(node: Expression) -> Expression:
        own = isinstance(node, ColumnRef) and node.index >= 0
        return replace(node, index=node.index + by) if own and isinstance(node, ColumnRef) else node

    return transform(expression, shift_column)
