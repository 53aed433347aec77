"""Relations made from one relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bamquery.plan.nodes import Limit
from bamquery.relations.base import RelationBase
from bamquery.relations.expressions.expression import ColumnLike, ConditionLike, KeyLike
from bamquery.relations.expressions.sql_literals import quoted_name
from bamquery.relations.expressions.statement_builder import StatementBuilder
from bamquery.relations.frames.python_values import whole_number
from bamquery.relations.verbs.grouped import GroupedRelation
from bamquery.relations.verbs.statements import (
    aggregate_statement,
    distinct_statement,
    filter_statement,
    order_statement,
    project_statement,
    source_statement,
    with_columns_statement,
)
from bamquery.sql_frontend.sql_text import sql_text
from bamquery.text.identifiers import fold_case

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation


class RelationVerbs(RelationBase):
    """Methods that return another relation; none of them runs anything.

    What they take are expressions: SQL in a str, or objects (`bamquery.col` and its like). `self` in SQL is
    the relation itself, so `filter("x > (SELECT avg(x) FROM self)")` works.
    """

    def set_alias(self, name: str) -> Relation:
        """The same rows under a name, by which conditions of joins tell the sides apart."""
        quoted_name(name)  # sees that it is one
        return self._rename(name, self._definition)

    @property
    def alias(self) -> str:
        """What conditions of joins call it: a table's name, or what `set_alias` said."""
        return self._name or "self"

    def filter(self, *conditions: ConditionLike) -> Relation:
        """Rows for which all conditions are true: `filter("distance >= 30")`, `filter(col("fare") > 3)`.

        Raises:
            SqlError: one is no condition, or names a column that is not there; shows where.
        """
        return self._query_over(filter_statement(self._source, conditions))

    def select(self, /, *expressions: ColumnLike, **named: ColumnLike | Any) -> Relation:
        """Columns computed from these: `select("total / distance AS per_mile", extra=col("extra") * 2)`.

        Args:
            expressions: SQL, where `*` is all columns, or objects.
            named: columns by the names that they get; what is no SQL and no expression is a constant.

        Raises:
            SqlError: one is no expression, or names a column that is not there; shows where.
        """
        return self._query_over(project_statement(self._source, expressions, named))

    def project(self, /, *expressions: ColumnLike, **named: ColumnLike | Any) -> Relation:
        """The same as `select`."""
        return self.select(*expressions, **named)

    def with_columns(self, /, *expressions: ColumnLike, **named: ColumnLike | Any) -> Relation:
        """All columns and these: `with_columns(tip_share="tip / fare")`.

        A column that there is gets the new value in its place; others come last. All are computed from the
        columns as they were.

        Raises:
            SqlError: as `select`.
        """
        if not expressions and not named:
            raise TypeError("with_columns: name at least one column")
        present = {fold_case(name): name for name in reversed(self._names)}
        return self._query_over(with_columns_statement(self._source, present, expressions, named))

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> Relation:
        """Other names for columns: `rename(fare="fare_amount")`, `rename({"old name": "new"})`.

        Raises:
            CatalogError: there is no such column.
        """
        wanted = {self._column(old, "rename"): new for old, new in {**(names or {}), **more}.items()}
        if not wanted:
            raise TypeError("rename: name at least one column")
        listed = ", ".join(f"{quoted_name(old)} AS {quoted_name(new)}" for old, new in wanted.items())
        return self._query_over(StatementBuilder().words(f"SELECT * RENAME ({listed}) FROM {self._source}"))

    def drop(self, *columns: str) -> Relation:
        """All columns but these, which are names.

        Raises:
            CatalogError: there is no such column. SqlError: none is left.
        """
        if not columns:
            raise TypeError("drop: name at least one column")
        listed = ", ".join(dict.fromkeys(quoted_name(self._column(name, "drop")) for name in columns))
        return self._query_over(StatementBuilder().words(f"SELECT * EXCLUDE ({listed}) FROM {self._source}"))

    def aggregate(
        self,
        /,
        *expressions: ColumnLike,
        by: ColumnLike | Sequence[ColumnLike] = (),
        **named: ColumnLike | Any,
    ) -> Relation:
        """One row a group, or one row in all: `aggregate("avg(tolls)", rides="count(*)", by="payment_type")`.

        The columns of `by` come first.

        Raises:
            SqlError: one is no expression, or names a column that is not there or not in `by`; shows where.
        """
        return self._query_over(aggregate_statement(self._source, expressions, by, named))

    def group_by(self, *keys: ColumnLike) -> GroupedRelation:
        """Groups, for `agg`: `group_by("payment_type").agg(rides="count(*)")` is `aggregate` with `by`."""
        if not keys:
            raise TypeError("group_by: name at least one key")
        return GroupedRelation(self, keys)

    def order(self, *keys: KeyLike) -> Relation:
        """Rows in order: `order("pickup_at DESC", col("fare").desc().nulls_first())`.

        Raises:
            SqlError: one is no sort key, or names a column that is not there; shows where.
        """
        return self._query_over(order_statement(self._source, keys))

    def sort(self, *keys: KeyLike) -> Relation:
        """The same as `order`."""
        return self.order(*keys)

    def limit(self, count: int, offset: int = 0) -> Relation:
        """At most `count` rows, after skipping `offset`."""
        count, offset = whole_number(count, "count"), whole_number(offset, "offset")
        text = f"SELECT * FROM self LIMIT {count} OFFSET {offset}"
        return self._derive(Limit(self._plan, count, offset), text)

    def offset(self, count: int) -> Relation:
        """The rows after the first `count`."""
        count = whole_number(count, "count")
        return self._derive(Limit(self._plan, None, count), f"SELECT * FROM self OFFSET {count}")

    def head(self, count: int = 5) -> Relation:
        """The first rows, at most `count`."""
        return self.limit(count)

    def distinct(
        self,
        on: ColumnLike | Sequence[ColumnLike] = (),
        *,
        order_by: KeyLike | Sequence[KeyLike] = (),
    ) -> Relation:
        """The different rows; with `on` the first row for each of its values.

        Args:
            on: expressions.
            order_by: of which order the first one is, and the answer's order; without it, any row counts.

        Raises:
            SqlError: these are no expressions, or name columns that are not there.
        """
        return self._query_over(distinct_statement(self._source, on, order_by))

    def sample(
        self,
        count: int | None = None,
        *,
        percent: float | None = None,
        seed: int | None = None,
        method: Literal["bernoulli", "system"] | None = None,
    ) -> Relation:
        """Rows drawn at random.

        Args:
            count: how many, exactly, where there are as many.
            percent: which share of them, from 0 to 100, about; instead of `count`.
            seed: the same rows each time.
            method: of a percentage: `bernoulli` draws each row by itself, `system`, the default, runs of
                1,024 rows, which costs less.

        Raises:
            TypeError: neither a count nor a percentage, or both. SqlError: a number that is out of range.
        """
        if (count is None) == (percent is None):
            raise TypeError("sample takes count or percent: one of them")
        if method not in (None, "bernoulli", "system"):
            raise ValueError(f'method is "bernoulli" or "system", not {method!r}')
        if count is not None:
            if method is not None:
                raise TypeError("a method is for a percentage: a number of rows is drawn in one way")
            sample = f"{whole_number(count, 'count')} ROWS"
        else:
            sample = f"{method or 'system'} ({_plain_number(percent)} PERCENT)"
        repeated = "" if seed is None else f" REPEATABLE ({whole_number(seed, 'seed')})"
        return self._query_over(
            StatementBuilder().words(f"SELECT * FROM self USING SAMPLE {sample}{repeated}")
        )

    def sql(self, text: str) -> Relation:
        """What a statement answers in which `self` is this relation: `sql("SELECT count(*) FROM self")`.

        Everything but a query is done when this returns.

        Raises:
            SqlError: it cannot be understood or run; shows where.
        """
        return self._execute_over(StatementBuilder().piece(sql_text(text, "text")))

    @property
    def _source(self) -> str:
        return source_statement(self._name)


def _plain_number(value: Any) -> str:
    """Without an exponent, which a percentage cannot have."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"percent is a number, not {type(value).__name__}")
    return f"{value:.12f}".rstrip("0").rstrip(".")
