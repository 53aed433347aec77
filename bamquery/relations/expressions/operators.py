"""What every expression can do: arithmetic, comparisons, logic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from bamquery.relations.expressions.sql_literals import Precedence, quoted_name, quoted_type, quoted_value

if TYPE_CHECKING:
    from bamquery.relations.expressions.expression import Expression


class NamedExpression:
    """An expression under a name, for `select` and its like; see `Expression.alias`."""

    def __init__(self, expression: str, name: str) -> None:
        """Made by `alias`; both are SQL."""
        self.expression = expression
        self.sql = f"{expression} AS {name}"

    def __repr__(self) -> str:
        return self.sql


class SortKey:
    """An expression with a direction, for `order` and its like; see `Expression.desc`."""

    def __init__(self, sql: str) -> None:
        """Made by `asc`, `desc` and their like."""
        self.sql = sql

    def nulls_first(self) -> SortKey:
        """Nulls before all values."""
        return SortKey(f"{self.sql} NULLS FIRST")

    def nulls_last(self) -> SortKey:
        """Nulls behind all values, which is so unless something is said."""
        return SortKey(f"{self.sql} NULLS LAST")

    def __repr__(self) -> str:
        return self.sql


class Operators:
    """An immutable piece of SQL; operators make larger ones. What is no expression is a constant there."""

    def __init__(self, sql: str, binding: Precedence = Precedence.WHOLE) -> None:
        """Made by `col`, `lit`, `expr`, `when` and `fn`."""
        self._sql = sql
        self._binding = binding

    @property
    def sql(self) -> str:
        """What it stands for."""
        return self._sql

    # Arithmetic.

    def __add__(self, other: Any) -> Expression:
        return _make_binary(self, "+", other, Precedence.SUM)

    def __radd__(self, other: Any) -> Expression:
        return _make_binary(other, "+", self, Precedence.SUM)

    def __sub__(self, other: Any) -> Expression:
        return _make_binary(self, "-", other, Precedence.SUM)

    def __rsub__(self, other: Any) -> Expression:
        return _make_binary(other, "-", self, Precedence.SUM)

    def __mul__(self, other: Any) -> Expression:
        return _make_binary(self, "*", other, Precedence.PRODUCT)

    def __rmul__(self, other: Any) -> Expression:
        return _make_binary(other, "*", self, Precedence.PRODUCT)

    def __truediv__(self, other: Any) -> Expression:
        return _make_binary(self, "/", other, Precedence.PRODUCT)

    def __rtruediv__(self, other: Any) -> Expression:
        return _make_binary(other, "/", self, Precedence.PRODUCT)

    def __floordiv__(self, other: Any) -> Expression:
        return _make_binary(self, "//", other, Precedence.PRODUCT)

    def __rfloordiv__(self, other: Any) -> Expression:
        return _make_binary(other, "//", self, Precedence.PRODUCT)

    def __mod__(self, other: Any) -> Expression:
        return _make_binary(self, "%", other, Precedence.PRODUCT)

    def __rmod__(self, other: Any) -> Expression:
        return _make_binary(other, "%", self, Precedence.PRODUCT)

    def __pow__(self, other: Any) -> Expression:
        return _make_term(f"pow({to_sql(self)}, {to_sql(other)})")

    def __rpow__(self, other: Any) -> Expression:
        return _make_term(f"pow({to_sql(other)}, {to_sql(self)})")

    def __neg__(self) -> Expression:
        return _make_term(f"-{_operand(self, Precedence.WHOLE)}", Precedence.SIGN)

    def __pos__(self) -> Expression:
        return _make_term(self._sql, self._binding)

    # Comparisons.

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _make_comparison(self, "=", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _make_comparison(self, "<>", other)

    def __lt__(self, other: Any) -> Expression:
        return _make_comparison(self, "<", other)

    def __le__(self, other: Any) -> Expression:
        return _make_comparison(self, "<=", other)

    def __gt__(self, other: Any) -> Expression:
        return _make_comparison(self, ">", other)

    def __ge__(self, other: Any) -> Expression:
        return _make_comparison(self, ">=", other)

    # == makes an expression, so none can be the key of a dictionary.
    __hash__ = None  # type: ignore[assignment]

    def is_distinct_from(self, other: Any) -> Expression:
        """Whether they differ, where null equals null; never null."""
        return _predicate(self, f"IS DISTINCT FROM {_operand(other, Precedence.SUM)}")

    def is_not_distinct_from(self, other: Any) -> Expression:
        """Whether they are equal, where null equals null; never null."""
        return _predicate(self, f"IS NOT DISTINCT FROM {_operand(other, Precedence.SUM)}")

    def is_null(self) -> Expression:
        """Whether there is no value."""
        return _predicate(self, "IS NULL")

    def is_not_null(self) -> Expression:
        """Whether there is a value."""
        return _predicate(self, "IS NOT NULL")

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Whether it equals one of these; null where it equals none of them and one of them is null.

        Raises:
            TypeError: `values` are no list, or one of them has no type in SQL.
        """
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise TypeError(
                f"is_in takes a list of values, not {type(values).__name__}; "
                'for the rows of a relation take join(other, on=..., how="semi")'
            )
        listed = ", ".join(to_sql(value) for value in values)
        if not listed:  # SQL has no empty list; null is in none, either
            return _predicate(self, "IS NULL") & _make_term("FALSE")
        return _predicate(self, f"IN ({listed})")

    def between(self, low: Any, high: Any) -> Expression:
        """Whether it is at least `low` and at most `high`."""
        return _predicate(
            self, f"BETWEEN {_operand(low, Precedence.SUM)} AND {_operand(high, Precedence.SUM)}"
        )

    def like(self, pattern: Any) -> Expression:
        """Whether a text matches, where % is any text and _ any character."""
        return _predicate(self, f"LIKE {_operand(pattern, Precedence.SUM)}")

    def ilike(self, pattern: Any) -> Expression:
        """As `like`, without regard to case."""
        return _predicate(self, f"ILIKE {_operand(pattern, Precedence.SUM)}")

    # Logic.

    def __and__(self, other: Any) -> Expression:
        return _make_binary(self, "AND", other, Precedence.AND)

    def __rand__(self, other: Any) -> Expression:
        return _make_binary(other, "AND", self, Precedence.AND)

    def __or__(self, other: Any) -> Expression:
        return _make_binary(self, "OR", other, Precedence.OR)

    def __ror__(self, other: Any) -> Expression:
        return _make_binary(other, "OR", self, Precedence.OR)

    def __invert__(self) -> Expression:
        return _make_term(f"NOT {_operand(self, Precedence.WHOLE)}", Precedence.NOT)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self._sql} is an expression, neither true nor false before a query runs: "
            "write & for and, | for or, ~ for not, between() for a < b < c,"
            " is_in() for in, and parentheses around comparisons"
        )

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError("in does not make an expression: write is_in(), or fn.contains() for strings")

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self._sql} is one expression, not several")

    # Types, names and directions.

    def cast(self, kind: Any) -> Expression:
        """The value as another type, named as SQL does (`"DECIMAL(9, 2)"`) or by Python's or Arrow's type.

        A value that does not fit stops the query.
        """
        return _make_term(f"CAST({self._sql} AS {quoted_type(kind)})")

    def try_cast(self, kind: Any) -> Expression:
        """As `cast`; null in place of a value that does not fit."""
        return _make_term(f"TRY_CAST({self._sql} AS {quoted_type(kind)})")

    def alias(self, name: str) -> NamedExpression:
        """The expression as a column of that name."""
        return NamedExpression(self._sql, quoted_name(name))

    def asc(self) -> SortKey:
        """Ascending: the least first."""
        return SortKey(f"{_key(self)} ASC")

    def desc(self) -> SortKey:
        """Descending: the greatest first."""
        return SortKey(f"{_key(self)} DESC")

    def nulls_first(self) -> SortKey:
        """Ascending, nulls before all values."""
        return self.asc().nulls_first()

    def nulls_last(self) -> SortKey:
        """Ascending, nulls behind all values."""
        return self.asc().nulls_last()

    def __repr__(self) -> str:
        return self._sql


def to_sql(value: Any) -> str:
    """An expression's SQL, or a Python value as a constant.

    Raises:
        TypeError: SQL has no type for it, or the name or direction that it has is for other places.
    """
    if isinstance(value, Operators):
        return value.sql
    if isinstance(value, NamedExpression):
        raise TypeError(f"{value} has a name already: alias() comes last")
    if isinstance(value, SortKey):
        raise TypeError(f"{value} has a direction: asc() and desc() come last, and go into order()")
    return quoted_value(value)


def _make_term(sql: str, binding: Precedence = Precedence.WHOLE) -> Expression:
    from bamquery.relations.expressions.expression import Term  # noqa: PLC0415 (which is made of this class)

    return Term(sql, binding)


def _operand(value: Any, least: Precedence) -> str:
    """In parentheses where its own operator binds less tightly than is needed."""
    text = to_sql(value)
    binding = value._binding if isinstance(value, Operators) else _precedence_of_constant(text)
    return text if binding >= least else f"({text})"


def _precedence_of_constant(text: str) -> Precedence:
    return Precedence.SIGN if text.startswith("-") else Precedence.WHOLE


def _make_binary(left: Any, operator: str, right: Any, binding: Precedence) -> Expression:
    # The right one in parentheses where it is of the same kind: a - (b - c).
    tighter = Precedence(binding + 1)
    return _make_term(f"{_operand(left, binding)} {operator} {_operand(right, tighter)}", binding)


def _make_comparison(left: Any, operator: str, right: Any) -> Expression:
    if right is None:
        raise TypeError(f"a comparison with None is never true: write {left}.is_null() or is_not_null()")
    sides = _operand(left, Precedence.SUM), _operand(right, Precedence.SUM)
    return _make_term(f"{sides[0]} {operator} {sides[1]}", Precedence.COMPARISON)


def _predicate(value: Operators, rest: str) -> Expression:
    return _make_term(f"{_operand(value, Precedence.SUM)} {rest}", Precedence.COMPARISON)


def _key(value: Operators) -> str:
    """A number alone would be a column's position."""
    return f"({value.sql})" if value.sql.lstrip("-").isdigit() else value.sql
