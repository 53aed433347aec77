"""Logic in its shortest form: few kinds of calls for the rules and the scan to recognise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.plan.comparisons import MIRRORED
from bamquery.plan.expressions import Call, Expression, Literal
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import rewrite_everywhere

_OPPOSITES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "equal": "not_equal",
        "not_equal": "equal",
        "less": "greater_equal",
        "greater_equal": "less",
        "greater": "less_equal",
        "less_equal": "greater",
        "is_null": "is_not_null",
        "is_not_null": "is_null",
        "is_distinct_from": "is_not_distinct_from",
        "is_not_distinct_from": "is_distinct_from",
    }
)
"""What NOT turns a call into. Values have a total order, NaN included, and a null stays a null."""


def simplify_logic(plan: Plan) -> Plan:
    """Flatten AND and OR, push NOT inward, drop what cannot matter, put literals on the right."""
    return rewrite_everywhere(plan, _simplify)


def _simplify(expression: Expression) -> Expression:
    match expression:
        case Call(function="and" | "or" as function, arguments=arguments):
            simple = _connective(function, arguments)
            return expression if simple == expression else simple
        case Call(function="not", arguments=(argument,)):
            return _negate(argument)
        case Call(function="in", arguments=(value, Literal() as member), type=kind):
            return Call("equal", (value, member), kind)
        case Call(function="case", arguments=arguments, type=kind):
            simple = _case(arguments, kind)
            return expression if simple == expression else simple
        case Call(function="coalesce", arguments=arguments):
            simple = _coalesce(expression, arguments)
            return expression if simple == expression else simple
        case Call(function=function, arguments=(Literal() as left, right), type=kind) if (
            function in MIRRORED and not isinstance(right, Literal)
        ):
            return Call(MIRRORED[function], (right, left), kind)
        case _:
            return expression


def _is_truth_literal(expression: Expression, truth: bool) -> bool:
    if not isinstance(expression, Literal) or not pa.types.is_boolean(expression.type):
        return False
    return expression.value.as_py() is truth


def _connective(function: str, arguments: Sequence[Expression]) -> Expression:
    neutral = function == "and"
    operands: dict[Expression, None] = {}
    for argument in arguments:
        nested = isinstance(argument, Call) and argument.function == function
        for operand in argument.arguments if nested and isinstance(argument, Call) else (argument,):
            if _is_truth_literal(operand, not neutral):
                return operand
            if not _is_truth_literal(operand, neutral):
                operands[operand] = None
    if not operands:
        return Literal(scalar(neutral, pa.bool_()))
    return next(iter(operands)) if len(operands) == 1 else Call(function, tuple(operands), pa.bool_())


def _negate(argument: Expression) -> Expression:
    match argument:
        case Call(function="not", arguments=(inner,)):
            return inner
        case Call(function="and" | "or", arguments=arguments):
            dual = "or" if argument.function == "and" else "and"
            return _connective(dual, [_negate(operand) for operand in arguments])
        case Call(function=function, arguments=arguments, type=kind) if function in _OPPOSITES:
            return Call(_OPPOSITES[function], arguments, kind)
        case _:
            return Call("not", (argument,), pa.bool_())


def _case(arguments: Sequence[Expression], kind: pa.DataType) -> Expression:
    """Without branches that are never taken, and without what follows one that always is."""
    kept: list[Expression] = []
    otherwise = arguments[-1]
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        if _is_truth_literal(condition, True):
            otherwise = value
            break
        if not isinstance(condition, Literal):
            kept += [condition, value]
    return Call("case", (*kept, otherwise), kind) if kept else otherwise


def _coalesce(call: Call, arguments: Sequence[Expression]) -> Expression:
    """Without nulls, and without what follows a value that is none."""
    kept: list[Expression] = []
    for argument in arguments:
        if isinstance(argument, Literal) and argument.is_null:
            continue
        kept.append(argument)
        if isinstance(argument, Literal):
            break
    if not kept:
        return arguments[0]
    if len(kept) == 1:
        return kept[0]
    return Call("coalesce", tuple(kept), call.type)
