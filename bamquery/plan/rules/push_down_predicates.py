"""Conditions move to where rows come from: into the scan, which reads other columns for survivors only."""

from __future__ import annotations

from dataclasses import replace

from bamquery.plan.expressions import ColumnRef, Expression, referenced_columns
from bamquery.plan.nodes import Aggregate, Filter, Plan, Project, Scan, Sort, Window
from bamquery.plan.rewriting import columns_of, conjunction, conjuncts, substitute, transform_plan


def push_down_predicates(plan: Plan) -> Plan:
    """Split each filter's condition and move each part below all that does not depend on it."""
    return transform_plan(plan, lambda node: _push_all(node) if isinstance(node, Filter) else node)


def _push_all(plan: Filter) -> Plan:
    """The filter's child with every condition as far down as it goes, in the order they were written."""
    child = plan.child
    kept: list[Expression] = []
    for predicate in conjuncts(plan.predicate):
        pushed = _push(child, predicate)
        if pushed is None:
            kept.append(predicate)
        else:
            child = pushed
    return Filter(child, conjunction(kept)) if kept else child


def _push(plan: Plan, predicate: Expression) -> Plan | None:
    """The plan with the predicate in it, or None where it has to stay above."""
    match plan:
        case Scan() if not referenced_columns(predicate):  # nothing that a scan could choose rows by
            return None
        case Scan(columns=columns, predicates=predicates):
            fields = plan.source.schema
            at_source = [
                replace(column, index=position, name=fields.field(position).name)
                for column, position in zip(columns_of(plan), columns, strict=True)
            ]
            return replace(plan, predicates=(*predicates, substitute(predicate, at_source)))
        case Filter(child=child):
            below = _push(child, predicate)
            if below is not None:
                return replace(plan, child=below)
            return replace(plan, predicate=conjunction([*conjuncts(plan.predicate), predicate]))
        case Project(child=child, expressions=expressions):
            return replace(plan, child=_below(child, substitute(predicate, expressions)))
        case Sort(child=child, limit=None, offset=0):
            return replace(plan, child=_below(child, predicate))
        case Aggregate(child=child, keys=keys, sets=()):
            # Without keys there is a row even where no row comes in.
            columns_read = referenced_columns(predicate)
            if not columns_read or any(index >= len(keys) for index in columns_read):
                return None
            return replace(plan, child=_below(child, substitute(predicate, keys)))
        case Window(child=child, partition=partition):
            # Whole partitions come or go, so that the others keep their rows.
            keys_read = {key.index for key in partition if isinstance(key, ColumnRef)}
            columns_read = referenced_columns(predicate)
            if not columns_read or not columns_read <= keys_read:
                return None
            return replace(plan, child=_below(child, predicate))
        case _:
            return None


def _below(child: Plan, predicate: Expression) -> Plan:
    pushed = _push(child, predicate)
    return Filter(child, predicate) if pushed is None else pushed
