"""Constants of a plan that only a device can compute, computed by the CPU before the plan is optimised.

So the plan holds literals where a scan prunes by them, and where a GPU has no such function. What would
fail is left to fail when it runs. `now()` is one moment for the whole plan.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import is_string
from bamquery.engine import host_evaluation
from bamquery.engine.execution.string_limits import StringLimits, use_string_limits
from bamquery.errors import ExecutionError
from bamquery.plan.assumptions import compute
from bamquery.plan.expressions import Call, Cast, Expression, Literal, children, transform, walk
from bamquery.plan.literals import evaluation
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import expressions_of, nodes_of, rewrite_everywhere
from bamquery.statement_context.cancellation import use_cancellation_check

_SMALL: Final = StringLimits(most=1 << 20)
"""A plan holds no larger strings."""
_MOST_KEPT: Final = 512
_QUESTIONS: Final = 16
"""How often a computation may ask whether to go on: one of seconds is left to the query, which can stop."""


def fold_constants(plan: Plan) -> Plan:
    """The plan with a literal for every call and cast over literals that can be computed."""
    return rewrite_everywhere(plan, _folder())


def depends_on_time(plan: Plan) -> bool:
    """Whether the plan folds to something else at another moment."""
    return any(
        isinstance(called, Call) and called.function == "now"
        for node in nodes_of(plan)
        for expression in expressions_of(node)
        for called in walk(expression)
    )


def fold_expression(expression: Expression) -> Expression:
    """The expression, so."""
    return transform(expression, _folder())


class _Moments:
    """Of all threads: a deep statement is bound on one of its own."""

    read = 0


_moments = _Moments()


def moments_read() -> int:
    """How often a moment has been put in the place of `now()`: what came of it is soon out of date."""
    return _moments.read


def _folder() -> Callable[[Expression], Expression]:
    """What folds a call or cast whose arguments are folded; its now() is when it was made."""
    moment = Literal(scalar(time.time_ns() // 1000, pa.timestamp("us", "UTC")))

    def rewrite(expression: Expression) -> Expression:
        if isinstance(expression, Call) and expression.function == "now":
            _moments.read += 1
            return moment
        return _constant(expression) or expression

    return rewrite


def _constant(expression: Expression) -> Literal | None:
    if isinstance(expression, Literal) or not isinstance(expression, Call | Cast):
        return None
    if not all(isinstance(child, Literal) for child in children(expression)):
        return None
    known = evaluation.evaluate(expression)
    if known is not None:
        return known
    if pa.types.is_dictionary(expression.type) or not host_evaluation.is_computable(expression):
        return None
    literals = [child for child in children(expression) if isinstance(child, Literal)]
    if isinstance(expression, Call):
        return compute(partial(_call_on_host, expression.function, expression.type), *literals)
    return compute(partial(_cast_on_host, expression.type, expression.try_), *literals)


def _call_on_host(function: str, kind: pa.DataType, *arguments: Literal) -> Literal | None:
    return _on_host(Call(function, arguments, kind))


def _cast_on_host(kind: pa.DataType, try_: bool, argument: Literal) -> Literal | None:
    return _on_host(Cast(argument, kind, try_))


def _on_host(made: Call | Cast) -> Literal | None:
    """The value of a call or cast of literals; the last ones are kept, as the next statement asks again."""
    found = _values.get(made)
    if found is None:
        found = _compute_on_host(made)
        if found is not None and not (is_string(found.type) or pa.types.is_large_binary(found.type)):
            if len(_values) >= _MOST_KEPT:
                _values.clear()
            _values[made] = found
    return found


_values: Final[dict[Call | Cast, Literal]] = {}


def _compute_on_host(made: Call | Cast) -> Literal | None:
    try:
        with use_string_limits(_SMALL), use_cancellation_check(_little_patience()):
            value = host_evaluation.evaluate(made, _row())
    except ExecutionError:
        return None
    return Literal(value[0] if isinstance(value, pa.Array) else value)


@functools.cache
def _row() -> pa.RecordBatch:
    return pa.record_batch({"row": pa.nulls(1, pa.int64())})


def _little_patience() -> Callable[[], None]:
    left = iter(range(_QUESTIONS))

    def check() -> None:
        if next(left, None) is None:
            raise ExecutionError("it takes too long for a plan")

    return check
