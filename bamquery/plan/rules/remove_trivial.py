"""Nodes that do nothing are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from bamquery.plan.expressions import Expression, Literal
from bamquery.plan.nodes import Aggregate, Filter, Join, Limit, Plan, Project, Scan
from bamquery.plan.rewriting import children, columns_of, conjunction, conjuncts, with_children
from bamquery.statement_context.cancellation import check_cancelled


def remove_trivial(plan: Plan) -> Plan:
    """Drop projections that change nothing, conditions that are always true and limits that do not limit.

    A condition that is never true becomes a limit of no rows, so that nothing is read; one of a join, of the
    sides whose rows nobody needs without a partner.
    """
    return _Removal()(plan, at_root=True)


class _Removal:
    """What became of each node, where its names matter and where they do not."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, bool], tuple[Plan, Plan]] = {}

    def __call__(self, plan: Plan, *, at_root: bool) -> Plan:
        found = self._made.get((id(plan), at_root))
        if found is None:
            check_cancelled()
            # Names matter in the result only; above a node that keeps them, it decides.
            names_matter = at_root and not isinstance(plan, Project | Aggregate)
            below = [self(child, at_root=names_matter) for child in children(plan)]
            made = _simplify_node(with_children(plan, below), at_root=at_root)
            found = self._made[id(plan), at_root] = (plan, made)
        return found[1]


def _simplify_node(plan: Plan, *, at_root: bool) -> Plan:
    match plan:
        case Project(child=child) if _changes_nothing(plan, at_root=at_root):
            return child
        case Scan(predicates=predicates) if any(isinstance(p, Literal) for p in predicates):
            # They stay in the scan: they name columns of the source, of which it may give out others.
            if not all(_is_true(p) for p in predicates if isinstance(p, Literal)):
                return Limit(replace(plan, predicates=()), 0)
            return replace(plan, predicates=tuple(p for p in predicates if not isinstance(p, Literal)))
        case Filter(child=child, predicate=predicate):
            return _filter(plan, child, conjuncts(predicate))
        case Join(condition=condition) if condition is not None:
            undecided = [conjunct for conjunct in conjuncts(condition) if not _is_true(conjunct)]
            if any(isinstance(conjunct, Literal) for conjunct in undecided) and plan.kind in _NEEDED:
                return _drop_unread_side(plan)
            if len(undecided) == len(conjuncts(condition)):
                return plan
            return replace(plan, condition=conjunction(undecided) if undecided else None)
        case Limit(child=child, count=None, offset=0):
            return child
        case _:
            return plan


def _is_true(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value.as_py() is True


_NEEDED: Final[Mapping[str, str]] = MappingProxyType(
    {"inner": "", "semi": "", "left": "left", "anti": "left", "single": "left", "right": "right"}
)
"""Of joins the side that gives rows where there are no pairs."""


def _drop_unread_side(plan: Join) -> Plan:
    """The join where its condition is false or null for all pairs: none of those rows is read."""
    needed = _NEEDED[plan.kind]
    left = plan.left if needed == "left" else Limit(plan.left, 0)
    right = plan.right if needed == "right" else Limit(plan.right, 0)
    return replace(plan, left=left, right=right, condition=None)


def _changes_nothing(plan: Project, *, at_root: bool) -> bool:
    below = columns_of(plan.child)
    if len(below) != len(plan.expressions):
        return False
    straight = all(
        getattr(expression, "index", None) == index for index, expression in enumerate(plan.expressions)
    )
    return straight and (not at_root or plan.names == tuple(column.name for column in below))


def _filter(plan: Filter, child: Plan, predicates: Sequence[Expression]) -> Plan:
    undecided = [predicate for predicate in predicates if not isinstance(predicate, Literal)]
    if any(isinstance(p, Literal) and p.value.as_py() is not True for p in predicates):  # false or null
        return Limit(child, 0)
    if len(undecided) == len(predicates):
        return plan
    return Filter(child, conjunction(undecided)) if undecided else child
