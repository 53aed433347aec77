"""Bound, typed expressions: what the binder makes, the rules rewrite and a device evaluates.

Types are Arrow types. A child's columns are referred to by position, so two columns of one name never
clash. Arguments already have the types their function wants: the binder inserts every `Cast`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from bamquery.statement_context.cancellation import check_cancelled
from bamquery.text.statement_text import Place

if TYPE_CHECKING:
    from bamquery.plan.assumptions import Origin

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """Column number `index` of the child's output."""

    index: int
    name: str
    type: pa.DataType


class Literal:
    """A constant; a null has its type too. Zeros of either sign are not equal, as what they give is not.

    Immutable. One that comes from a statement's text knows so while a plan is made (`assumptions.py`): who
    reads its `value` makes the plan one for this value.

    Attributes:
        origin: which constants of the text it is made of; None for others.
    """

    __match_args__ = ("value",)
    __slots__ = ("_value", "origin")

    def __init__(self, value: pa.Scalar[Any], origin: Origin | None = None) -> None:
        self._value = value
        self.origin: Final = origin

    @property
    def value(self) -> pa.Scalar[Any]:
        """The constant, an Arrow scalar."""
        if self.origin is not None:
            self.origin.fix()
        return self._value

    @property
    def type(self) -> pa.DataType:
        """Type of the constant."""
        kind: pa.DataType = self._value.type
        return kind

    @property
    def is_null(self) -> bool:
        """Whether it has no value; with its type, that is the same for all constants that a plan serves."""
        return not self._value.is_valid

    @property
    def plain(self) -> Literal:
        """The same, whose value may be looked at."""
        return self if self.origin is None else Literal(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        mine, others = self._value, other._value
        for one in (self.origin, other.origin):
            if one is not None:
                one.is_compared = True
        if mine is others:
            return True
        same = bool(mine == others)
        return same and (not pa.types.is_floating(self.type) or str(mine) == str(others))

    def __hash__(self) -> int:
        if self.origin is not None:
            self.origin.is_compared = True
        return hash(self._value)

    def __repr__(self) -> str:
        return f"Literal(value={self._value!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Literal, (self._value,)


@dataclass(frozen=True, eq=False)
class Members:
    """What `in` looks among, in place of literals: many values, one node. Two are equal only if they are one.

    Long lists of numbers in a statement are such, and operators make them while a query runs.

    Attributes:
        values: none null, none floating-point; an Arrow array of different ones, or what stands for one:
            `bamquery.storage.statistics.late_values`.
    """

    values: Any

    @property
    def type(self) -> pa.DataType:
        """Type of each of them."""
        kind: pa.DataType = self.values.type
        return kind

    @property
    def text(self) -> str:
        """For people: how many they are."""
        return f"{len(self.values):,} values"


class _CachedHash:
    """What is worked out about an immutable object is kept beside its fields; a copy knows nothing of it."""

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]

    def _hash_of(self, *parts: object) -> int:
        """The hash of its fields: as dictionaries ask for it at each level, it is worked out once."""
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = hash(parts)
        return known


@dataclass(frozen=True)
class Call(_CachedHash):
    """A scalar function of `function_catalog.plan_functions` applied to arguments.

    Nulls: three-valued logic for `and`, `or`, `in`; null in, null out for the others unless the
    function's description says otherwise.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType

    def __hash__(self) -> int:
        return self._hash_of(self.function, self.arguments, self.type)


@dataclass(frozen=True)
class Cast(_CachedHash):
    """A conversion that fails with `ExecutionError` where a value does not fit, or gives null if `try_`.

    Values convert as in DuckDB (`bamquery.plan.literals.conversion` does so for literals). From a dictionary
    type the values are looked up, to one they are encoded. `place` is where the statement has it, for errors;
    casts that differ in nothing else are equal.
    """

    argument: Expression
    type: pa.DataType
    try_: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        return self._hash_of(self.argument, self.type, self.try_)


Expression: TypeAlias = ColumnRef | Literal | Members | Call | Cast


@dataclass(frozen=True, slots=True)
class SortKey:
    """One ORDER BY term; DuckDB's default is nulls last, ascending or descending."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of `function_catalog.plan_functions` over the rows of a group where `filter` is true.

    With `order` it takes the rows in that order, else as they come. `parameter` is a constant that some
    functions want besides their arguments: which quantile, which separator.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType
    distinct: bool = False
    filter: Expression | None = None
    order: tuple[SortKey, ...] = ()
    parameter: Literal | None = None

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """Every expression that it reads: arguments, order, filter."""
        filters = () if self.filter is None else (self.filter,)
        return (*self.arguments, *(key.expression for key in self.order), *filters)


def children(expression: Expression) -> tuple[Expression, ...]:
    """Direct subexpressions."""
    match expression:
        case Call(arguments=arguments):
            return arguments
        case Cast(argument=argument):
            return (argument,)
        case _:
            return ()


def count_expressions(expression: Expression) -> int:
    """How many expressions it is made of, itself included: what stands in it twice counts twice."""
    if not isinstance(expression, Call | Cast):
        return 1
    known: int | None = expression.__dict__.get("_parts")
    if known is None:
        check_cancelled()
        known = expression.__dict__["_parts"] = 1 + sum(map(count_expressions, children(expression)))
    return known


def expression_depth(expression: Expression) -> int:
    """How many expressions there are, itself included, on the longest way down."""
    if not isinstance(expression, Call | Cast):
        return 1
    known: int | None = expression.__dict__.get("_depth")
    if known is None:
        check_cancelled()
        known = expression.__dict__["_depth"] = 1 + max(
            map(expression_depth, children(expression)), default=0
        )
    return known


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it, parents first."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        if isinstance(found, Call):
            check_cancelled()
            waiting += found.arguments[::-1]
        elif isinstance(found, Cast):
            waiting.append(found.argument)


def _with_arguments(call: Call, arguments: tuple[Expression, ...]) -> Call:
    if type(call) is not Call:  # the binder has others
        return replace(call, arguments=arguments)
    return Call(call.function, arguments, call.type)


def transform(expression: Expression, rewrite: Callable[[Expression], Expression]) -> Expression:
    """Rebuild bottom-up, each node passed through `rewrite` after its children; what stays is not copied."""
    if isinstance(expression, Call):
        check_cancelled()
        arguments = expression.arguments
        made = tuple([transform(argument, rewrite) for argument in arguments])
        if any(map(operator.is_not, made, arguments)):
            expression = _with_arguments(expression, made)
    elif isinstance(expression, Cast):
        one = transform(expression.argument, rewrite)
        if one is not expression.argument:
            expression = replace(expression, argument=one)
    return rewrite(expression)


_MADE_OF_OTHERS = (Call, Cast)


def transform_calls(
    expression: Expression, rewrite: Callable[[Expression], Expression], key: str
) -> Expression:
    """As `transform`, for what leaves all but calls and casts as they are, and is the same each time.

    What is left as it is, with all below it, is noted under the key: `rewrite` is not asked again.
    """
    if not isinstance(expression, _MADE_OF_OTHERS) or key in expression.__dict__:
        return expression
    before = expression
    if isinstance(expression, Call):
        check_cancelled()
        arguments = expression.arguments
        made = tuple(
            [
                transform_calls(argument, rewrite, key) if isinstance(argument, _MADE_OF_OTHERS) else argument
                for argument in arguments
            ]
        )
        if any(map(operator.is_not, made, arguments)):
            expression = _with_arguments(expression, made)
    else:
        one = transform_calls(expression.argument, rewrite, key)
        if one is not expression.argument:
            expression = replace(expression, argument=one)
    after = rewrite(expression)
    if after is before:
        before.__dict__[key] = True
    return after


def fact_of_expression(function: Callable[[Expression], Answer]) -> Callable[[Expression], Answer]:
    """A function of expressions whose answer a call or cast keeps: the same whoever asks, and whenever.

    Where that is the expression itself it is found anew: what knows itself stays until a garbage collection.
    """
    key = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def look_up(expression: Expression) -> Answer:
        if not isinstance(expression, _MADE_OF_OTHERS):
            return function(expression)
        known = expression.__dict__
        if key in known:
            answer: Answer = known[key]
            return answer
        found = function(expression)
        if found is not expression:
            known[key] = found
        return found

    return look_up


_NO_COLUMNS: Final[frozenset[int]] = frozenset()


def referenced_columns(*expressions: Expression) -> frozenset[int]:
    """Indexes of the child's columns that the expressions read."""
    return _NO_COLUMNS.union(*map(_columns_of, expressions))


def _columns_of(expression: Expression) -> frozenset[int]:
    if isinstance(expression, ColumnRef):
        return frozenset((expression.index,))
    if not isinstance(expression, _MADE_OF_OTHERS):
        return _NO_COLUMNS
    known: frozenset[int] | None = expression.__dict__.get("_columns")
    if known is None:
        columns = frozenset(e.index for e in walk(expression) if isinstance(e, ColumnRef))
        known = expression.__dict__["_columns"] = columns
    return known
