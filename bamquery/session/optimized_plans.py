"""What a bound plan runs as: its constants computed, then all rules applied. Nothing else calls these."""

from __future__ import annotations

from typing import Final

from bamquery.engine.constant_folding import fold_constants
from bamquery.plan.nodes import Plan
from bamquery.plan.optimizer import optimize

_KEPT: Final = f"{__name__}.optimized"


def optimized_plan(plan: Plan) -> Plan:
    """The plan after all rules, at this moment: it has the same rows in the same columns."""
    kept: Plan | None = plan.__dict__.get(_KEPT)
    return optimize(fold_constants(plan)) if kept is None else kept


def keep_optimized(plan: Plan, optimized: Plan) -> None:
    """Let this node of a plan be optimised no more: `optimized` is what it is at any moment.

    They share no node, so that the tables that they read are let go of with the last who holds the plan.
    """
    plan.__dict__[_KEPT] = optimized
