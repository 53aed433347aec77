"""Programs that compute expressions as columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bamquery.engine.pipeline.instructions import Program
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.plan.expressions import Call, Cast, Expression, Members, fact_of_expression, walk


def may_be_kept(expressions: Sequence[Expression]) -> bool:
    """Whether programs of these may outlive their query: not with lists of values, such as a join's keys."""
    return not any(map(_has_members, expressions))


@fact_of_expression
def _has_members(expression: Expression) -> bool:
    return any(isinstance(part, Members) for part in walk(expression))


def program_of(
    expressions: Sequence[Expression], least_operations: int = 1
) -> tuple[Program, tuple[int, ...]] | None:
    """A program for those of the expressions that it computes, and which these are; None if there is none.

    `least_operations`: instructions that compute something, of the whole program.
    """
    builder = ProgramBuilder()
    places = []
    for place, expression in enumerate(expressions):
        if not isinstance(expression, Call | Cast) or pa.types.is_float32(expression.type):
            continue
        before = builder.operations
        value = builder.add(expression)
        if value is not None and (builder.operations > before or expression in builder.computed):
            builder.program.outputs.append(value.register)
            places.append(place)
    if not places or builder.operations < least_operations:
        return None
    return builder.program, tuple(places)
