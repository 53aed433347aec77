"""Row values, (a, b), where they are compared: taken apart into comparisons of their fields.

As in DuckDB, rows compare as wholes, so that an answer is never null: null equals null, and is greater than
any value. = and <> with the rows of a query, and so IN, are the exception: fields are compared one by one,
and nulls make it null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from sqlglot import exp

from bamquery.plan.expressions import Expression
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.functions import operators

if TYPE_CHECKING:
    from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder

Row: TypeAlias = "Expression | Sequence[Row]"
"""A value, or the fields of a row."""

_WITH_NULL: Final = {"is_distinct_from": True, "is_not_distinct_from": False}
"""What comparing a row with NULL gives; null, for other functions."""


def is_row(node: exp.Expr) -> bool:
    """Whether the expression is a row value."""
    return row_fields(node) is not None


def row_fields(node: exp.Expr) -> Sequence[exp.Expr] | None:
    """The fields of a row value, (a, b) or row(a, b); None for any other expression."""
    node = node.unnest()
    if isinstance(node, exp.Tuple) or (isinstance(node, exp.Anonymous) and node.name.lower() == "row"):
        return node.expressions
    return None


def bind_comparison(
    binder: ExpressionBinder, function: str, node: exp.Expr, left: exp.Expr, right: exp.Expr
) -> Expression:
    """A row value compared with another."""
    if isinstance(left.unnest(), exp.Null) or isinstance(right.unnest(), exp.Null):
        return operators.literal(_WITH_NULL.get(function), operators.BOOLEAN)
    one, other = apply_to_each(lambda side: _bind_row(binder, side), [left, right], binder.sql)
    with errors_at(binder.sql, node):
        return _compare_rows(function, one, other)


def bind_in(binder: ExpressionBinder, node: exp.In) -> Expression:
    """A row value in a list of others."""
    with errors_at(binder.sql, node):
        if not node.expressions:
            raise ValueError("IN needs at least one value")
    tests = apply_to_each(
        lambda other: bind_comparison(binder, "equal", node, node.this, other), node.expressions, binder.sql
    )
    return tests[0] if len(tests) == 1 else operators.logical("or", tests)


def bind_between(binder: ExpressionBinder, node: exp.Between) -> Expression:
    """A row value between two others."""
    bounds = [("greater_equal", node.args["low"]), ("less_equal", node.args["high"])]
    tests = apply_to_each(
        lambda bound: bind_comparison(binder, bound[0], node, node.this, bound[1]), bounds, binder.sql
    )
    return operators.logical("and", tests)


def compared_with_columns(
    function: str, values: Sequence[Expression], columns: Sequence[Expression]
) -> Expression:
    """One value or a row's fields compared with a query's columns, as many as there are of them.

    Raises:
        ValueError: types that do not compare.
    """
    if len(values) == 1:
        return operators.compare(function, values[0], columns[0])
    if function not in ("equal", "not_equal"):
        return _compare_rows(function, values, columns)
    tests = [operators.compare("equal", one, other) for one, other in zip(values, columns, strict=True)]
    same = operators.logical("and", tests)
    return same if function == "equal" else operators.negation(same)


def _bind_row(binder: ExpressionBinder, node: exp.Expr) -> Row:
    fields = row_fields(node)
    if fields is None:
        return binder.bind(node)
    with errors_at(binder.sql, node):
        if not fields:
            raise ValueError("a row value needs values")
    return apply_to_each(lambda field: _bind_row(binder, field), fields, binder.sql)


def _compare_rows(function: str, left: Row, right: Row) -> Expression:
    match function:
        case "equal" | "is_not_distinct_from":
            return _equal(left, right)
        case "not_equal" | "is_distinct_from":
            return operators.negation(_equal(left, right))
        case "less":
            return _less_than(left, right)
        case "greater":
            return _less_than(right, left)
        case "less_equal":
            return operators.negation(_less_than(right, left))
        case _:
            return operators.negation(_less_than(left, right))


def _pairs(left: Row, right: Row) -> list[tuple[Row, Row]] | None:
    """Parts beside those that they are compared with; None for two values."""
    if isinstance(left, Expression) and isinstance(right, Expression):
        return None
    if isinstance(left, Expression) or isinstance(right, Expression):
        raise ValueError("a row value compares with another one only")
    if len(left) != len(right):
        raise ValueError(f"a row of {len(left)} values cannot be compared with one of {len(right)}")
    return list(zip(left, right, strict=True))


def _equal(left: Row, right: Row) -> Expression:
    pairs = _pairs(left, right)
    if pairs is None:
        assert isinstance(left, Expression)
        assert isinstance(right, Expression)
        return operators.compare("is_not_distinct_from", left, right)
    tests = [_equal(one, other) for one, other in pairs]
    return tests[0] if len(tests) == 1 else operators.logical("and", tests)


def _less_than(left: Row, right: Row) -> Expression:
    pairs = _pairs(left, right)
    if pairs is None:
        assert isinstance(left, Expression)
        assert isinstance(right, Expression)
        known = operators.is_null_test(left, negate=True)
        before_null = operators.is_null_test(right, negate=False)
        return operators.logical(
            "and",
            [known, operators.logical("or", [before_null, operators.compare("less", left, right)])],
        )
    (one, other), *later = pairs
    if not later:
        return _less_than(one, other)
    rest = _less_than([a for a, _ in later], [b for _, b in later])
    tie: Expression = operators.logical("and", [_equal(one, other), rest])
    return operators.logical("or", [_less_than(one, other), tie])
