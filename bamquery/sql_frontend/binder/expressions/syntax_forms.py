"""Operators and whatever else has a syntax of its own, bound: one function a form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types.type_groups import HUGEINT, INTERVAL
from bamquery.plan.expressions import Call, Cast, Expression, Literal
from bamquery.sql_frontend.binder.expressions import literal_lists
from bamquery.sql_frontend.binder.expressions import row_values as binder_rows
from bamquery.sql_frontend.binder.expressions import slices as binder_slices
from bamquery.sql_frontend.binder.expressions import subqueries as binder_subqueries
from bamquery.sql_frontend.binder.expressions.grouping_sets import has_sets
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions import scalar_functions as functions
from bamquery.sql_frontend.sql_types import from_syntax, unknown_type
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.syntax.calls import query_of_in
from bamquery.sql_frontend.syntax.positions import number_text, place_of
from bamquery.sql_frontend.text_constants import given_literal, literal, text_of

if TYPE_CHECKING:
    from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder

Bind: TypeAlias = "Callable[[ExpressionBinder, Any], Expression]"
"""Binds one kind of node."""

_ESCAPED: Final[Mapping[type[exp.Expr], str]] = MappingProxyType(
    {exp.Like: "like_escape", exp.ILike: "ilike_escape"}
)


def _bind_literal(binder: ExpressionBinder, node: exp.Literal) -> Expression:
    text, is_string = text_of(node), bool(node.args["is_string"])
    written = "" if is_string else number_text(node, binder.sql, text)
    with errors_at(binder.sql, node):
        return given_literal(node, literal(text, written, is_string=is_string))


def _bind_bytes(binder: ExpressionBinder, node: exp.HexString) -> Expression:
    return operators.literal(bytes.fromhex(node.name), pa.large_binary())


def _bind_boolean(binder: ExpressionBinder, node: exp.Boolean) -> Expression:
    return operators.literal(bool(node.this), operators.BOOLEAN)


def _bind_null(binder: ExpressionBinder, node: exp.Null) -> Expression:
    return operators.literal(None, pa.null())


def _bind_operator(
    binder: ExpressionBinder, build: Callable[..., Expression], node: exp.Expr, *operands: exp.Expr
) -> Expression:
    bound = binder.bind_all(operands)
    with errors_at(binder.sql, node):
        return build(*bound)


def _bind_chain(binder: ExpressionBinder, function: str, node: exp.Expr) -> Expression:
    operands = binder.bind_all(list(_flatten_chain(node)))
    with errors_at(binder.sql, node):
        return operators.logical(function, operands)


def _bind_is(binder: ExpressionBinder, node: exp.Is) -> Expression:
    value = node.expression
    if isinstance(value, exp.Null):
        return _bind_operator(binder, lambda o: operators.is_null_test(o, negate=False), node, node.this)
    return _bind_operator(binder, lambda o: operators.is_truth_value(o, bool(value.this)), node, node.this)


def _bind_not(binder: ExpressionBinder, node: exp.Not) -> Expression:
    below = node.this
    if isinstance(below, exp.Is) and isinstance(below.expression, exp.Null):
        return _bind_operator(binder, lambda o: operators.is_null_test(o, negate=True), node, below.this)
    return _bind_operator(binder, operators.negation, node, below)


def _bind_between(binder: ExpressionBinder, node: exp.Between) -> Expression:
    if any(map(binder_rows.is_row, [node.this, node.args["low"], node.args["high"]])):
        return binder_rows.bind_between(binder, node)
    return _bind_operator(binder, operators.between, node, node.this, node.args["low"], node.args["high"])


def _bind_in(binder: ExpressionBinder, node: exp.In) -> Expression:
    if query_of_in(node) is not None:
        return binder_subqueries.bind_in(binder, node)
    numbers = literal_lists.whole_numbers(node.expressions)
    if any(map(binder_rows.is_row, [node.this, *(node.expressions if numbers is None else ())])):
        return binder_rows.bind_in(binder, node)
    if numbers is None:
        value, *candidates = binder.bind_all([node.this, *node.expressions])
    else:
        value = binder.bind(node.this)
        members = literal_lists.membership(value, numbers)
        if members is not None:
            return members
        candidates = list(binder.bind_all(node.expressions))
    with errors_at(binder.sql, node):
        if not candidates:  # false, but null for null
            return operators.logical(
                "and",
                [operators.is_null_test(value, negate=False), operators.literal(None, operators.BOOLEAN)],
            )
        return operators.is_in(value, candidates)


def _bind_like(binder: ExpressionBinder, function: str, node: exp.Expr) -> Expression:
    text, pattern = binder.bind_all([node.this, node.expression])
    with errors_at(binder.sql, node):
        matches = functions.like(function, text, pattern)
        return operators.negation(matches) if node.args.get("negate") else matches


def _bind_pattern(binder: ExpressionBinder, function: str, node: exp.Expr) -> Expression:
    return _bind_operator(binder, partial(functions.like, function), node, node.this, node.expression)


def _bind_escape(binder: ExpressionBinder, node: exp.Escape) -> Expression:
    match = node.this
    function = _ESCAPED.get(type(match))
    with errors_at(binder.sql, node):
        if function is None:
            raise ValueError("ESCAPE belongs to LIKE or ILIKE")
    escape = node.expression if isinstance(node.expression, exp.Expr) else exp.Null()
    operands = binder.bind_all([match.this, match.expression, escape])
    with errors_at(binder.sql, node):
        matches = functions.like(function, *operands)
        return operators.negation(matches) if match.args.get("negate") else matches


def _bind_interval(binder: ExpressionBinder, node: exp.Interval) -> Expression:
    amount, unit = binder.bind(node.this), node.args.get("unit")
    with errors_at(binder.sql, node):
        if unit is None:
            return operators.explicit_cast(amount, INTERVAL)
        return functions.interval_of_unit(amount, unit.name)


def _bind_at_time_zone(binder: ExpressionBinder, node: exp.AtTimeZone) -> Expression:
    return _bind_operator(binder, functions.at_time_zone, node, node.this, node.args["zone"])


def _bind_position(binder: ExpressionBinder, node: exp.StrPosition) -> Expression:
    return _bind_call(binder, "position", node, node.this, node.args["substr"])


def _bind_overlay(binder: ExpressionBinder, node: exp.Overlay) -> Expression:
    places = [node.args["from_"], node.args.get("for_")]
    return _bind_call(
        binder, "overlay", node, node.this, node.expression, *(place for place in places if place is not None)
    )


def _bind_call(binder: ExpressionBinder, name: str, node: exp.Expr, *operands: exp.Expr) -> Expression:
    """A function that is written in a way of its own."""
    arguments = binder.bind_all(operands)
    with errors_at(binder.sql, node):
        return functions.call(name, arguments)


def _bind_case(binder: ExpressionBinder, node: exp.Case) -> Expression:
    subject = None if node.this is None else binder.bind(node.this)
    otherwise = node.args.get("default") or exp.Null()
    branches = node.args["ifs"]
    bound = binder.bind_all(
        [*(branch.this for branch in branches), *(branch.args["true"] for branch in branches), otherwise]
    )
    conditions, values = bound[: len(branches)], bound[len(branches) : -1]
    with errors_at(binder.sql, node):
        if subject is not None:
            conditions = [operators.compare("equal", subject, value) for value in conditions]
        return functions.case(list(zip(conditions, values, strict=True)), bound[-1])


def _bind_if(binder: ExpressionBinder, node: exp.If) -> Expression:
    otherwise = node.args.get("false")
    with errors_at(binder.sql, node):
        if otherwise is None:
            raise ValueError("if() takes 3 arguments, not 2")
    condition, value, other = binder.bind_all([node.this, node.args["true"], otherwise])
    with errors_at(binder.sql, node):
        return functions.case([(condition, value)], other)


def _bind_cast(binder: ExpressionBinder, node: exp.Cast | exp.TryCast) -> Expression:
    argument = binder.bind(node.this)
    target = node.args["to"]
    with errors_at(binder.sql, target):
        kind = from_syntax(target)
        if kind is None:
            raise ValueError(unknown_type(_type_text(target)))
    if target.this == exp.DType.DECIMAL and kind == HUGEINT and not _is_whole(argument):
        # Of the two that are one type here, only HUGEINT rounds halves to even.
        argument = Call("round", (argument,), argument.type)
    with errors_at(binder.sql, node):
        try_ = isinstance(node, exp.TryCast)
        found = operators.explicit_cast(argument, kind, try_=try_, place=place_of(node, binder.sql))
    if isinstance(found, Cast | Literal) or not _among_sets(node):
        return found
    # Where there are grouping sets a column and its cast are two keys, also if the cast changes nothing.
    return Cast(found, kind, try_)


def _is_whole(argument: Expression) -> bool:
    """Whether there is nothing to round: no float, or one in the statement without a fraction."""
    if not pa.types.is_floating(argument.type):
        return True
    value = argument.value.as_py() if isinstance(argument, Literal) else 0.5
    return value is None or float(value).is_integer()


def _among_sets(node: exp.Expr) -> bool:
    select = node.find_ancestor(exp.Select)
    group = None if select is None else select.args.get("group")
    return group is not None and has_sets(group)


def _bind_extract(binder: ExpressionBinder, node: exp.Extract) -> Expression:
    value = binder.bind(node.expression)
    with errors_at(binder.sql, node):
        return functions.date_part(str(node.this.this), value, "extract")


def _bind_substring(binder: ExpressionBinder, node: exp.Substring) -> Expression:
    start, length = node.args.get("start"), node.args.get("length")
    if start is None and length is not None:
        start = exp.Literal.number(1)  # substring(text FOR length)
    parts = [part for part in (node.this, start, length) if part is not None]
    arguments = binder.bind_all(parts)
    with errors_at(binder.sql, node):
        return functions.call("substring", arguments)


def _bind_trim(binder: ExpressionBinder, node: exp.Trim) -> Expression:
    characters = node.args.get("expression")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "trim")
    return _bind_call(binder, name, node, node.this, *([] if characters is None else [characters]))


def _flatten_chain(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of a chain of one connector, without recursion: such chains get long."""
    kind = type(node)
    pending = [node]
    while pending:
        operand = pending.pop()
        if type(operand) is kind:
            pending += [operand.args["expression"], operand.args["this"]]
        else:
            yield operand


def _type_text(node: exp.DataType) -> str:
    return str(node.args.get("kind") or node.this.value)


def _binary(build: Callable[[Expression, Expression], Expression]) -> Bind:
    return lambda binder, node: _bind_operator(binder, build, node, node.this, node.expression)


def _bitwise(function: str) -> Bind:
    return _binary(lambda left, right: operators.bitwise(function, left, right))


def _pattern_binder(function: str) -> Bind:
    return lambda binder, node: _bind_pattern(binder, function, node)


def _call_binder(name: str) -> Bind:
    """A function that is written without parentheses."""
    return lambda binder, node: _bind_call(binder, name, node)


def _comparison(function: str) -> Bind:
    plain = _binary(lambda left, right: operators.compare(function, left, right))

    def bind(binder: ExpressionBinder, node: Any) -> Expression:
        if isinstance(node.expression, exp.Any | exp.All):
            return binder_subqueries.bind_quantified(binder, function, node)
        if binder_rows.is_row(node.this) or binder_rows.is_row(node.expression):
            return binder_rows.bind_comparison(binder, function, node, node.this, node.expression)
        return plain(binder, node)

    return bind


FORMS: Final[Mapping[type[exp.Expr], Bind]] = MappingProxyType(
    {
        exp.Literal: _bind_literal,
        exp.HexString: _bind_bytes,
        exp.Boolean: _bind_boolean,
        exp.Null: _bind_null,
        exp.And: lambda binder, node: _bind_chain(binder, "and", node),
        exp.Or: lambda binder, node: _bind_chain(binder, "or", node),
        exp.Not: _bind_not,
        exp.Is: _bind_is,
        exp.EQ: _comparison("equal"),
        exp.NEQ: _comparison("not_equal"),
        exp.LT: _comparison("less"),
        exp.LTE: _comparison("less_equal"),
        exp.GT: _comparison("greater"),
        exp.GTE: _comparison("greater_equal"),
        exp.NullSafeEQ: _comparison("is_not_distinct_from"),
        exp.NullSafeNEQ: _comparison("is_distinct_from"),
        exp.Between: _bind_between,
        exp.In: _bind_in,
        exp.Like: lambda binder, node: _bind_like(binder, "like", node),
        exp.ILike: lambda binder, node: _bind_like(binder, "ilike", node),
        exp.Add: _binary(operators.add),
        exp.Sub: _binary(operators.subtract),
        exp.Mul: _binary(operators.multiply),
        exp.Div: _binary(operators.divide),
        exp.IntDiv: _binary(operators.floor_divide),
        exp.Mod: _binary(operators.modulo),
        exp.Pow: _binary(operators.power),
        exp.DPipe: _binary(operators.concatenate),
        exp.Neg: lambda binder, node: _bind_operator(binder, operators.minus, node, node.this),
        syntax.Plus: lambda binder, node: _bind_operator(binder, operators.plus, node, node.this),
        exp.Abs: lambda binder, node: _bind_call(binder, "abs", node, node.this),
        exp.BitwiseAnd: _bitwise("bit_and"),
        exp.BitwiseOr: _bitwise("bit_or"),
        exp.BitwiseNot: lambda binder, node: _bind_operator(binder, operators.bitwise_not, node, node.this),
        exp.BitwiseLeftShift: _bitwise("shift_left"),
        exp.BitwiseRightShift: _bitwise("shift_right"),
        exp.Escape: _bind_escape,
        exp.Glob: _pattern_binder("glob"),
        exp.SimilarTo: _pattern_binder("regexp_full_match"),
        exp.RegexpLike: _pattern_binder("regexp_matches"),
        exp.StartsWith: _pattern_binder("starts_with"),
        exp.Interval: _bind_interval,
        exp.AtTimeZone: _bind_at_time_zone,
        exp.StrPosition: _bind_position,
        exp.Overlay: _bind_overlay,
        exp.CurrentDate: _call_binder("current_date"),
        exp.CurrentTimestamp: _call_binder("current_timestamp"),
        exp.Localtime: _call_binder("localtime"),
        exp.Localtimestamp: _call_binder("localtimestamp"),
        exp.Case: _bind_case,
        exp.If: _bind_if,
        exp.Cast: _bind_cast,
        exp.TryCast: _bind_cast,
        exp.Extract: _bind_extract,
        exp.Substring: _bind_substring,
        exp.Trim: _bind_trim,
        exp.Bracket: binder_slices.bind_bracket,
    }
)
