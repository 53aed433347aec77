"""What a bound plan runs as: its constants computed, then all rules applied. Nothing else calls these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bamquery.engine.constant_folding import fold_constants
from bamquery.plan.assumptions import Assumptions
from bamquery.plan.late_plan import LatePlan
from bamquery.plan.nodes import Plan
from bamquery.plan.optimizer import optimize

_KEPT: Final = f"{__name__}.optimized"
_WANTED: Final = f"{__name__}.wanted"


def optimized_plan(plan: Plan | LatePlan) -> Plan:
    """The plan after all rules, at this moment: it has the same rows in the same columns."""
    if isinstance(plan, LatePlan):
        return plan.optimized
    kept: Plan | None = plan.__dict__.get(_KEPT)
    if kept is not None:
        return kept
    wanted: tuple[Assumptions, Callable[[Plan], None]] | None = plan.__dict__.get(_WANTED)
    if wanted is None:
        return optimize(fold_constants(plan))
    assumptions, receive = wanted
    with assumptions.made_here():
        optimized = optimize(fold_constants(plan))
    receive(optimized)
    return optimized


def keep_optimized(plan: Plan, optimized: Plan) -> None:
    """Let this node of a plan be optimised no more: `optimized` is what it is at any moment.

    They share no node, so that the tables that they read are let go of with the last who holds the plan.
    """
    plan.__dict__[_KEPT] = optimized


def receive_optimized(plan: Plan, assumptions: Assumptions, receive: Callable[[Plan], None]) -> None:
    """Let who wants it have what this node is optimised to; `receive` must not know the plan.

    What rules assume of its constants is noted in `assumptions`.
    """
    plan.__dict__[_WANTED] = (assumptions, receive)
