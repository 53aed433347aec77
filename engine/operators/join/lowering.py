"""Logical joins to physical ones: which conditions are keys, and which side is held in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from bamquery.data_types.type_groups import is_interval
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.join.asof_join import AsofJoin
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.operators.join.probe_first import MOST_ROWS
from bamquery.engine.operators.project import Project
from bamquery.engine.sources.scan_sources import reads_step
from bamquery.plan import nodes
from bamquery.plan.asof_condition import asof_condition
from bamquery.plan.cardinality import estimated_rows
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal, referenced_columns
from bamquery.plan.interning import draws_at_random
from bamquery.plan.nodes import JoinKind, Plan
from bamquery.plan.rewriting import children, conjunction, conjuncts, fact_of_node, renumber

_MOST_KEPT: Final = 1 << 20
"""Rows that are worth holding for all steps of a recursive query, each of which may want few of them."""
_SWAPPED: Final[Mapping[JoinKind, JoinKind]] = MappingProxyType(
    {"inner": "inner", "left": "right", "right": "left", "full": "full"}
)
"""The kinds whose sides may change places, and what they are then."""


def lower_join(
    plan: nodes.Join, lower: Callable[[Plan], Operator[Any]], *, dynamic_filters: bool
) -> Operator[Any]:
    """The operator of a join; the side with fewer rows, as far as that is known, is held."""
    probe, build = lower(plan.left), lower(plan.right)
    if plan.kind in ("asof", "asof_left"):
        return _lower_asof(plan, probe, build)
    left, right = estimated_rows(plan.left), estimated_rows(plan.right)
    keeps_left, keeps_right = _stays(plan.left, plan.right), _stays(plan.right, plan.left)
    if plan.kind in _SWAPPED and (keeps_left or (left < right and not keeps_right)):
        return _swap_sides(plan, probe, build, left, dynamic_filters=dynamic_filters, keeps=keeps_left)
    join = Join(probe, build, plan.kind, join_condition(plan), plan.fields)
    if keeps_right:
        _keep(join, dynamic_filters=dynamic_filters)
        return join
    few = 2 * left <= right and left <= MOST_ROWS
    if dynamic_filters and not (few and join.filter_build()):
        join.filter_probe()
        join.filter_build_by_chain(right)
    return join


def _stays(side: Plan, other: Plan) -> bool:
    """Whether it is the same for all steps of a recursive query, and the other side is not."""
    return (
        reads_step(other) and not reads_step(side) and estimated_rows(side) <= _MOST_KEPT and not _draws(side)
    )


@fact_of_node
def _draws(plan: Plan) -> bool:
    return draws_at_random(plan) or any(map(_draws, children(plan)))


def _keep(join: Join[Any], *, dynamic_filters: bool) -> None:
    if dynamic_filters:
        join.filter_probe()
    join.keep_build()


def _lower_asof(plan: nodes.Join, left: Operator[Any], right: Operator[Any]) -> Operator[Any]:
    assert plan.condition is not None
    width = len(plan.left.fields)
    found = asof_condition(plan.condition, width)
    keys = [(mine, _renumber_for_right(other, width), equal) for mine, other, equal in found.keys]
    inequality = (found.inequality, found.left, _renumber_for_right(found.right, width))
    return AsofJoin(left, right, keys, inequality, plan.fields, keeps_left=plan.kind == "asof_left")


def join_condition(plan: nodes.Join) -> JoinCondition:
    """Equalities between the sides as keys, what else there is as a condition on pairs."""
    width = len(plan.left.fields)
    keys: list[tuple[Expression, Expression, bool]] = []
    others: list[Expression] = []
    compared: tuple[tuple[Expression, Expression], ...] = ()
    for conjunct in [] if plan.condition is None else conjuncts(plan.condition):
        key = _key(conjunct, width)
        if key is None:
            others.append(conjunct)
        else:
            keys.append(key)
    if plan.kind == "mark" and not _answers_alone(keys, others):
        # A comparison with null makes the mark null: keys are only those that have no such answer.
        others = (
            [conjunct for conjunct in conjuncts(plan.condition) if not _is_safe(conjunct, width)]
            if plan.condition is not None
            else []
        )
        keys = [key for key in keys if key[2]]
        if not any(is_interval(left.type) for left, _, _ in keys):
            compared = _compared_columns(others, width)
    return JoinCondition(
        tuple(left for left, _, _ in keys),
        tuple(_renumber_for_right(right, width) for _, right, _ in keys),
        tuple(nulls_equal for _, _, nulls_equal in keys),
        conjunction(others) if others else None,
        compared,
    )


def _compared_columns(given: Sequence[Expression], width: int) -> tuple[tuple[Expression, Expression], ...]:
    """Values of the left and of the right that all those conditions compare; none if one does not."""
    found = [_values_compared(conjunct, width) for conjunct in given]
    keys = [(left, _renumber_for_right(right, width)) for left, right in filter(None, found)]
    whole = len(keys) == len(given) and not any(is_interval(left.type) for left, _ in keys)
    return tuple(keys) if whole else ()


def _values_compared(conjunct: Expression, width: int) -> tuple[Expression, Expression] | None:
    """What is equal on the left and on the right, one of them maybe a constant; None for other conditions."""
    key = _key(conjunct, width)
    if key is not None:
        return key[:2]
    if isinstance(conjunct, Call) and conjunct.function == "equal":
        for one, other in (conjunct.arguments, conjunct.arguments[::-1]):
            if isinstance(one, Literal) and (read := referenced_columns(other)):
                if min(read) >= width:
                    return one, other
                if max(read) < width:
                    return other, one
    return None


def _answers_alone(keys: Sequence[tuple[Expression, Expression, bool]], others: Sequence[Expression]) -> bool:
    """Whether the keys say all of a mark: one that may be null, or any number that treat null as a value."""
    return not others and (len(keys) == 1 or all(nulls_equal for _, _, nulls_equal in keys))


def _is_safe(conjunct: Expression, width: int) -> bool:
    key = _key(conjunct, width)
    return key is not None and key[2]


def _key(conjunct: Expression, width: int) -> tuple[Expression, Expression, bool] | None:
    """Left key, right key and whether nulls are equal; None for a condition of another kind."""
    if not isinstance(conjunct, Call) or conjunct.function not in ("equal", "is_not_distinct_from"):
        return None
    one, other = conjunct.arguments
    nulls_equal = conjunct.function == "is_not_distinct_from"
    for left, right in ((one, other), (other, one)):
        of_left, of_right = referenced_columns(left), referenced_columns(right)
        if of_left and of_right and max(of_left) < width <= min(of_right):
            return left, right, nulls_equal
    return None


def _renumber_for_right(expression: Expression, width: int) -> Expression:
    return renumber(expression, {index: index - width for index in referenced_columns(expression)})


def _swap_sides(
    plan: nodes.Join,
    left: Operator[Any],
    right: Operator[Any],
    rows: float,
    *,
    dynamic_filters: bool,
    keeps: bool,
) -> Operator[Any]:
    """The join with its sides in each other's place, and its columns back in theirs; `rows`: of the left."""
    left_width, right_width = len(plan.left.fields), len(plan.right.fields)
    places = {i: right_width + i for i in range(left_width)}
    places |= {left_width + i: i for i in range(right_width)}
    condition = None if plan.condition is None else renumber(plan.condition, places)
    turned = nodes.Join(plan.right, plan.left, _SWAPPED[plan.kind], condition)
    join = Join(right, left, turned.kind, join_condition(turned), turned.fields)
    if keeps:
        _keep(join, dynamic_filters=dynamic_filters)
    elif dynamic_filters:
        join.filter_probe()
        join.filter_build_by_chain(rows)
    columns = [ColumnRef(places[i], field.name, field.type) for i, field in enumerate(plan.fields)]
    return Project(join, columns, plan.fields)
