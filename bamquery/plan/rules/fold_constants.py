"""Constant parts of expressions are computed once, here."""

from __future__ import annotations

from bamquery.plan.literals.evaluation import evaluate
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import rewrite_everywhere


def fold_constants(plan: Plan) -> Plan:
    """Replace calls and casts over literals by their value; what would fail is left to fail when it runs."""
    return rewrite_everywhere(plan, lambda expression: evaluate(expression) or expression)
