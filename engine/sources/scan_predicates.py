"""What a scan can make of its predicates: ranges that zone maps prune by, and steps that read columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    Members,
    fact_of_expression,
    referenced_columns,
    transform,
    walk,
)
from bamquery.plan.interning import DIFFERENT_EACH_TIME
from bamquery.storage.statistics.predicate import Operator, RangePredicate

_COMPARISONS: Final[Mapping[str, Operator]] = MappingProxyType(
    {
        "equal": "=",
        "not_equal": "!=",
        "less": "<",
        "less_equal": "<=",
        "greater": ">",
        "greater_equal": ">=",
    }
)
_MIRRORED: Final[Mapping[Operator, Operator]] = MappingProxyType(
    {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
)
_OVERFLOWING: Final = frozenset(
    {"add", "subtract", "multiply", "negate", "abs", "floor_divide", "modulo", "round"}
)
"""Functions that raise for some values, but never for floating-point ones."""

_RANGES: Final = f"{__name__}.ranges"
_PARTIAL: Final = frozenset({"sqrt", "ln", "power"})
"""Functions that raise for some values of any type."""


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One of the conditions that all must hold, over positions in the source's schema.

    Attributes:
        columns: positions it reads, ascending.
        ranges: what it says of single columns, in a form that zone maps prune by; may be empty.
        can_fail: whether some value makes its evaluation an error.
    """

    expression: Expression
    columns: tuple[int, ...]
    ranges: tuple[RangePredicate, ...]
    can_fail: bool

    def without_ranges(self) -> Conjunct:
        """The same condition, by which nothing is pruned."""
        return replace(self, ranges=())


def split_conjuncts(predicates: Iterable[Expression], schema: pa.Schema) -> list[Conjunct]:
    """The conjuncts of a conjunction, in the order written; nested ANDs are taken apart."""
    return [_conjunct(expression, schema) for expression in _flatten(predicates)]


def _conjunct(expression: Expression, schema: pa.Schema) -> Conjunct:
    columns = tuple(sorted(referenced_columns(expression)))
    return Conjunct(expression, columns, _ranges(expression, schema), _can_fail(expression))


def _ranges(expression: Expression, schema: pa.Schema) -> tuple[RangePredicate, ...]:
    """The same ones for the next run of a plan, as zone maps know what they answered to them."""
    if not isinstance(expression, Call | Cast):
        found = _range(expression, schema)
        return () if found is None else (found,)
    known: tuple[pa.Schema, tuple[RangePredicate, ...]] | None = expression.__dict__.get(_RANGES)
    if known is None or known[0] is not schema:
        found = _range(expression, schema)
        known = expression.__dict__[_RANGES] = schema, (() if found is None else (found,))
    return known[1]


def implied_conjuncts(conjuncts: Iterable[Conjunct], schema: pa.Schema) -> list[Conjunct]:
    """What must hold of single columns where conditions of several do: of ORs each part of which names them.

    Who drops the rows for which it does not hold has fewer to look at, column by column.
    """
    found: list[Conjunct] = []
    for conjunct in conjuncts:
        expression = conjunct.expression
        if len(conjunct.columns) < 2 or conjunct.can_fail or not _is_call(expression, "or"):
            continue
        if any(isinstance(e, Call) and e.function in DIFFERENT_EACH_TIME for e in walk(expression)):
            continue
        branches = [list(_flatten([branch])) for branch in _flatten([expression], "or")]
        for column in conjunct.columns:
            terms = [[e for e in branch if referenced_columns(e) == {column}] for branch in branches]
            if all(terms):
                parts = tuple(dict.fromkeys(map(conjunction, terms)))
                either = parts[0] if len(parts) == 1 else Call("or", parts, pa.bool_())
                found += split_conjuncts([either], schema)
    return found


def rebase(expression: Expression, positions: Sequence[int]) -> Expression:
    """The expression over a frame whose columns are the source's at `positions`."""
    new = {position: index for index, position in enumerate(positions)}

    def move(node: Expression) -> Expression:
        return ColumnRef(new[node.index], node.name, node.type) if isinstance(node, ColumnRef) else node

    return transform(expression, move)


@fact_of_expression
def over_own_columns(expression: Expression) -> Expression:
    """The expression over a frame of the columns that it reads, in the source's order."""
    return rebase(expression, sorted(referenced_columns(expression)))


def conjunction(expressions: Sequence[Expression]) -> Expression:
    """One expression that is true where all of one or more are."""
    if len(expressions) == 1:
        return expressions[0]
    return Call("and", tuple(expressions), pa.bool_())


def _flatten(predicates: Iterable[Expression], function: str = "and") -> Iterable[Expression]:
    for predicate in predicates:
        if isinstance(predicate, Call) and predicate.function == function:
            yield from _flatten(predicate.arguments, function)
        else:
            yield predicate


def _is_call(expression: Expression, function: str) -> bool:
    return isinstance(expression, Call) and expression.function == function


def _range(expression: Expression, schema: pa.Schema) -> RangePredicate | None:
    match expression:
        case Call(function="is_null" | "is_not_null", arguments=(argument,)):
            column = _column(argument)
            if column is None:
                return None
            return RangePredicate(
                schema.field(column).name,
                "is_null" if expression.function == "is_null" else "is_not_null",
            )
        case Call(function="in", arguments=(argument, Members(values=members))):
            column = _column(argument)
            if column is None or members.type != _value_type(schema.field(column).type):
                return None
            return RangePredicate(schema.field(column).name, "in", members=members)
        case Call(function="in", arguments=(argument, *options)):
            column = _column(argument)
            # A null among the options makes the answer null instead of false: never true.
            values = [option.value for option in options if isinstance(option, Literal)]
            if column is None or len(values) < len(options):
                return None
            return _checked_range(schema, column, "in", [value for value in values if value.is_valid])
        case Call(function=function, arguments=(left, right)) if function in _COMPARISONS:
            operator = _COMPARISONS[function]
            if isinstance(left, Literal):
                left, right, operator = right, left, _MIRRORED[operator]
            column = _column(left)
            if column is None or not isinstance(right, Literal):
                return None
            return _checked_range(schema, column, operator, [right.value])
        case Call(function="or", arguments=(condition, Call(function="is_null", arguments=(argument,)))):
            found = _range(condition, schema)
            column = _column(argument)
            if found is None or column is None or schema.field(column).name != found.column:
                return None
            return replace(found, or_null=True)
        case ColumnRef(index=index, type=kind) if pa.types.is_boolean(kind):
            return _checked_range(schema, index, "=", [pa.scalar(True)])
        case _:
            return None


def _column(expression: Expression) -> int | None:
    """The column that is compared as it is, or as what its dictionary stands for."""
    match expression:
        case ColumnRef(index=index):
            return index
        case Cast(argument=ColumnRef(index=index, type=kind), type=target) if (
            pa.types.is_dictionary(kind) and kind.value_type == target
        ):
            return index
        case _:
            return None


def _checked_range(
    schema: pa.Schema, column: int, operator: Operator, values: Sequence[pa.Scalar[Any]]
) -> RangePredicate | None:
    """The range, unless the literals are not of the column's own type."""
    field = schema.field(column)
    kind = _value_type(field.type)
    if any(value.type != kind for value in values):
        return None
    return RangePredicate(field.name, operator, tuple(values))


def _value_type(kind: Any) -> pa.DataType:
    found: pa.DataType = kind.value_type if pa.types.is_dictionary(kind) else kind
    return found


@fact_of_expression
def _can_fail(expression: Expression) -> bool:
    for node in walk(expression):
        if isinstance(node, Cast) and not node.try_ and not _always_fits(node.argument.type, node.type):
            return True
        if isinstance(node, Call) and (
            node.function in _PARTIAL
            or (node.function in _OVERFLOWING and not pa.types.is_floating(node.type))
        ):
            return True
    return False


def _always_fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast has an answer for every value, as far as types tell at a glance."""
    if pa.types.is_dictionary(source):
        return _always_fits(source.value_type, target)
    if source == target or pa.types.is_large_string(target):
        return True
    if pa.types.is_integer(source) and pa.types.is_integer(target):
        widened = target.bit_width > source.bit_width and pa.types.is_signed_integer(target)
        return widened or (
            pa.types.is_unsigned_integer(source)
            and pa.types.is_unsigned_integer(target)
            and target.bit_width >= source.bit_width
        )
    if pa.types.is_floating(target):
        return pa.types.is_integer(source) or (
            pa.types.is_floating(source) and target.bit_width >= source.bit_width
        )
    return False
