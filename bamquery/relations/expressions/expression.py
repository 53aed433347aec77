"""Expressions and calls of functions, and the functions that are used most as methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from bamquery.relations.expressions.operators import NamedExpression, Operators, SortKey, to_sql
from bamquery.relations.expressions.pieces import (
    condition_piece,
    frame_text,
    listed_text,
    one_expression,
    sort_piece,
    value_piece,
)
from bamquery.relations.expressions.sql_literals import Precedence, quoted_name
from bamquery.sql_frontend.sql_text import sql_text


class Expression(Operators):
    """A value for each row, or of each group. See `col`, `lit`, `expr`, `when` and `fn`.

    `repr()` is the SQL. Comparisons and operators make expressions, so `and`, `or`, `not` and `in` cannot be
    used with it: write `&`, `|`, `~` and `is_in`. What is no expression is a constant: `col("a") == "x"`.
    """

    # Aggregates.

    def sum(self) -> FunctionCall:
        """The sum of a group's values."""
        return call("sum", self)

    def mean(self) -> FunctionCall:
        """The average of a group's values."""
        return call("avg", self)

    def min(self) -> FunctionCall:
        """A group's least value."""
        return call("min", self)

    def max(self) -> FunctionCall:
        """A group's greatest value."""
        return call("max", self)

    def count(self) -> FunctionCall:
        """How many values of a group are not null."""
        return call("count", self)

    def n_unique(self) -> FunctionCall:
        """How many different values a group has, null not counted."""
        return call("count", self, distinct=True)

    def median(self) -> FunctionCall:
        """The middle of a group's values."""
        return call("median", self)

    def quantile(self, share: float) -> FunctionCall:
        """The value below which that share of a group's values lie, interpolated: 0.5 is the median."""
        return call("quantile_cont", self, share)

    def std(self) -> FunctionCall:
        """The standard deviation of a group's values as a sample."""
        return call("stddev_samp", self)

    def var(self) -> FunctionCall:
        """The variance of a group's values as a sample."""
        return call("var_samp", self)

    def first(self) -> FunctionCall:
        """A group's first value, null or not."""
        return call("first", self)

    def last(self) -> FunctionCall:
        """A group's last value, null or not."""
        return call("last", self)

    # Values.

    def abs(self) -> FunctionCall:
        """Without its sign."""
        return call("abs", self)

    def round(self, digits: int = 0) -> FunctionCall:
        """Rounded to so many digits behind the point."""
        return call("round", self, digits)

    def floor(self) -> FunctionCall:
        """The greatest whole number that is not greater."""
        return call("floor", self)

    def ceil(self) -> FunctionCall:
        """The least whole number that is not less."""
        return call("ceil", self)

    def fill_null(self, value: Any) -> FunctionCall:
        """This, or `value` where it is null."""
        return call("coalesce", self, value)

    def upper(self) -> FunctionCall:
        """A text in capitals."""
        return call("upper", self)

    def lower(self) -> FunctionCall:
        """A text in small letters."""
        return call("lower", self)

    def length(self) -> FunctionCall:
        """How many characters a text has."""
        return call("length", self)

    def contains(self, text: Any) -> FunctionCall:
        """Whether a text has another one in it."""
        return call("contains", self, text)

    def starts_with(self, text: Any) -> FunctionCall:
        """Whether a text begins with another one."""
        return call("starts_with", self, text)

    def ends_with(self, text: Any) -> FunctionCall:
        """Whether a text ends with another one."""
        return call("ends_with", self, text)


class Term(Expression):
    """Any expression but a call or a CASE: were these kinds of it, Python would turn `term < call` around."""


class FunctionCall(Expression):
    """A call, which an aggregate's FILTER and OVER may follow."""

    def filter(self, condition: str | Expression) -> FunctionCall:
        """Of an aggregate: over those rows only for which a condition is true."""
        return FunctionCall(f"{self.sql} FILTER (WHERE {condition_piece(condition)})")

    def over(
        self,
        partition_by: str | Expression | Sequence[str | Expression] = (),
        order_by: str | Expression | SortKey | Sequence[str | Expression | SortKey] = (),
        *,
        rows: tuple[int | None, int | None] | None = None,
        frame: str | None = None,
    ) -> Expression:
        """Over a window: for each row, of the rows of its partition.

        Args:
            partition_by: what rows of one partition have in common.
            order_by: the order within it.
            rows: the first and last row that count, as distances from the row itself: `(-2, 0)` are it and
                the two before; None is as far as the partition goes.
            frame: the same as SQL, for all other frames: `"RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND
                CURRENT ROW"`.

        Raises:
            TypeError, ValueError: both `rows` and `frame`, or what is no frame.
            SqlError: what is no expression.
        """
        parts = []
        if partition := listed_text(partition_by, "partition_by", value_piece):
            parts.append(f"PARTITION BY {partition}")
        if order := listed_text(order_by, "order_by", sort_piece):
            parts.append(f"ORDER BY {order}")
        if shown := frame_text(rows, frame):
            parts.append(shown)
        return Term(f"{self.sql} OVER ({' '.join(parts)})")


class Case(Expression):
    """CASE: `when(...).then(...)`, more of these, and `otherwise`; null where nothing holds."""

    def __init__(self, branches: Sequence[str]) -> None:
        """Made by `when`."""
        super().__init__(f"CASE {' '.join(branches)} END")
        self._branches = tuple(branches)

    def when(self, condition: str | Expression) -> When:
        """For rows for which no condition before has been true, another one."""
        return When(condition, self._branches)

    def otherwise(self, value: Any) -> Expression:
        """For rows for which no condition is true."""
        return Term(f"CASE {' '.join(self._branches)} ELSE {to_sql(value)} END")


class When:
    """A condition that waits for its value."""

    def __init__(self, condition: str | Expression, before: Sequence[str] = ()) -> None:
        """Made by `when`."""
        self._branches = (*before, f"WHEN {condition_piece(condition)}")

    def then(self, value: Any) -> Case:
        """The value for rows for which the condition is true: an expression or a constant."""
        *before, condition = self._branches
        return Case([*before, f"{condition} THEN {to_sql(value)}"])


def col(*names: str) -> Expression:
    """A column by its name; with two names a table's: `col("fare")`, `col("trips", "fare")`.

    The name is taken as it is, whatever characters it has.
    """
    if not 1 <= len(names) <= 2:
        raise TypeError("col takes a column's name, or a table's and a column's")
    return Term(".".join(map(quoted_name, names)))


def lit(value: Any) -> Expression:
    """A Python value as a constant of the type that it has as a parameter: an int INTEGER or BIGINT, a
    float DOUBLE, a Decimal DECIMAL, a str VARCHAR, a timedelta INTERVAL, None NULL.

    Raises:
        TypeError: SQL has no type for it.
    """  # noqa: D205 (one sentence, which is longer than a line)
    text = to_sql(value)
    return Term(text, Precedence.SIGN if text.startswith("-") else Precedence.WHOLE)


def expr(sql: str) -> Expression:
    """An expression that is written as SQL: `expr("a + b") * 2`.

    Raises:
        SqlError: it is not one expression.
    """
    text = sql_text(sql, "sql").strip()
    one_expression(text, "sql")
    # In parentheses: its operators bind as they do alone. A comment at its end ends with the line.
    return Term(f"({text}\n)" if "--" in text else f"({text})")


def when(condition: str | Expression) -> When:
    """Begin a CASE: `when(col("fare") > 100).then("dear").otherwise("cheap")`."""
    return When(condition)


def call(name: str, *arguments: Any, distinct: bool = False, order_by: Any = ()) -> FunctionCall:
    """The call of a function by its name, which is taken as it is."""
    listed = ", ".join(to_sql(argument) for argument in arguments)
    order = listed_text(order_by, "order_by", sort_piece)
    inside = f"{'DISTINCT ' if distinct else ''}{listed}{f' ORDER BY {order}' if order else ''}"
    return FunctionCall(f"{name}({inside})")


ColumnLike: TypeAlias = str | Expression | NamedExpression
"""What `select` and its like take: SQL, or an object."""

KeyLike: TypeAlias = str | Expression | SortKey
"""What `order` and its like take."""

ConditionLike: TypeAlias = str | Expression
"""What `filter` takes."""

JoinKind: TypeAlias = Literal[
    "inner", "left", "right", "full", "outer", "semi", "anti", "cross", "asof", "asof_left"
]
