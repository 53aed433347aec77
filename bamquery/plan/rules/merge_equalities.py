"""``x = 1 OR x = 2`` is ``x IN (1, 2)``: one test, which zone maps can prune by."""

from __future__ import annotations

import pyarrow as pa

from bamquery.plan.expressions import Call, Expression, Literal
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import rewrite_everywhere


def merge_equalities(plan: Plan) -> Plan:
    """Join the tests of one expression against literals, at the place of the first of them."""
    return rewrite_everywhere(plan, _merge)


def _merge(expression: Expression) -> Expression:
    if not isinstance(expression, Call) or expression.function != "or":
        return expression
    members: dict[Expression, dict[Expression, None]] = {}
    operands: list[tuple[bool, Expression]] = []  # whether the second is a value that `members` tests
    for operand in expression.arguments:
        match operand:
            case Call(function="equal" | "in", arguments=(value, *literals)) if _all_literals(literals):
                if value not in members:
                    operands.append((True, value))
                members.setdefault(value, {}).update(dict.fromkeys(literals))
            case _:
                operands.append((False, operand))
    merged = [_test(operand, members[operand]) if tested else operand for tested, operand in operands]
    if len(merged) == 1:
        return merged[0]
    made = Call("or", tuple(merged), pa.bool_())
    return expression if made == expression else made


def _all_literals(expressions: list[Expression]) -> bool:
    return all(isinstance(expression, Literal) for expression in expressions)


def _test(value: Expression, literals: dict[Expression, None]) -> Expression:
    return Call("equal" if len(literals) == 1 else "in", (value, *literals), pa.bool_())
