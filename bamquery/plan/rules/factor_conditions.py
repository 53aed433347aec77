"""``(a AND b) OR (a AND c)`` is ``a AND (b OR c)``: what all branches ask may be a join's key."""

from __future__ import annotations

import pyarrow as pa

from bamquery.plan.expressions import Call, Expression
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import conjunction, conjuncts, rewrite_everywhere


def factor_conditions(plan: Plan) -> Plan:
    """Take conditions that stand in every branch of an OR out of it."""
    return rewrite_everywhere(plan, _factor)


def _factor(expression: Expression) -> Expression:
    if not isinstance(expression, Call) or expression.function != "or":
        return expression
    branches = [conjuncts(branch) for branch in expression.arguments]
    common = [conjunct for conjunct in branches[0] if all(conjunct in branch for branch in branches[1:])]
    if not common:
        return expression
    rests = [[conjunct for conjunct in branch if conjunct not in common] for branch in branches]
    if not all(rests):
        return conjunction(common)  # one branch asks nothing more
    return conjunction([*common, Call("or", tuple(map(conjunction, rests)), pa.bool_())])
