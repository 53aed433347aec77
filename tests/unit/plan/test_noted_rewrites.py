"""An expression notes which rules leave it as it is: they are asked of it once only."""

from __future__ import annotations

import pyarrow as pa

from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal, transform_calls
from bamquery.plan.literals.scalars import scalar

_BIGINT = pa.int64()
_X = ColumnRef(0, "x", _BIGINT)


def greater(number: int) -> Call:
    return Call("greater", (_X, Literal(scalar(number, _BIGINT))), pa.bool_())


def test_a_rule_is_asked_once_for_what_it_leaves() -> None:
    asked: list[Expression] = []

    def leave(expression: Expression) -> Expression:
        asked.append(expression)
        return expression

    whole = Call("or", (greater(1), greater(2)), pa.bool_())
    assert transform_calls(whole, leave, "leave") is whole
    assert asked == [greater(1), greater(2), whole]
    assert transform_calls(whole, leave, "leave") is whole
    assert len(asked) == 3
    assert transform_calls(whole, leave, "another") is whole
    assert len(asked) == 6


def test_what_a_rule_changes_is_asked_again() -> None:
    def mirror(expression: Expression) -> Expression:
        changes = isinstance(expression, Call) and expression.function == "greater"
        return Call("less", expression.arguments[::-1], pa.bool_()) if changes else expression

    whole = Call("or", (greater(1), greater(2)), pa.bool_())
    once = transform_calls(whole, mirror, "mirror")
    assert [argument.function for argument in once.arguments] == ["less", "less"]
    assert transform_calls(whole, mirror, "mirror") == once
    assert transform_calls(once, mirror, "mirror") is once
