"""Single functions over a relation's columns as methods, under the names that DuckDB's relations have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from bamquery.relations.base import RelationBase
from bamquery.relations.expressions.pieces import piece, select
from bamquery.relations.expressions.sql_literals import quoted_value
from bamquery.relations.expressions.statement_builder import StatementBuilder

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation


class _Call:
    """An aggregate of one relation, waiting for its arguments."""

    def __init__(self, relation: RelationBase, method: _Method) -> None:
        self._relation = relation
        self._method = method

    def __call__(
        self,
        expression: str = "",
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Relation:
        """One row, one row for each of `groups`, or one for each row with a window; all of it SQL.

        Args:
            expression: what it is computed of.
            groups: keys.
            window_spec: `OVER (...)`.
            projected_columns: columns before it.

        Raises:
            SqlError: these are not expressions.
        """
        function = self._method.function
        inside = expression or self._method.default
        call = StatementBuilder().words(f"{function}(")
        call.piece(piece(inside, "expression")).words(")")
        return build_call(self._relation, call, groups, window_spec, projected_columns)


class _Method:
    """An aggregate as a method."""

    def __init__(self, function: str, default: str = "") -> None:
        self.function = function
        self.default = default

    @overload
    def __get__(self, relation: None, owner: type) -> _Method: ...
    @overload
    def __get__(self, relation: RelationBase, owner: type) -> _Call: ...
    def __get__(self, relation: RelationBase | None, owner: type) -> _Method | _Call:
        return self if relation is None else _Call(relation, self)


def build_call(
    relation: RelationBase, call: StatementBuilder, groups: str, window: str, columns: str
) -> Relation:
    """A call over a relation's rows, columns before it, groups and a window: pieces of SQL, "" for none.

    Raises:
        SqlError: these are not expressions.
    """
    text = StatementBuilder().words("SELECT")
    if columns:
        text.piece(piece(columns, "projected_columns")).words(",")
    text.add_all(call)
    if window:
        text.piece(piece(window, "window_spec"))
    text.words("FROM self")
    if groups:
        text.words("GROUP BY").piece(piece(groups, "groups"))
    select(text, {"group"})
    return relation._query_over(text)


class RelationAggregates(RelationBase):
    """`relation.sum("fare")`: an aggregate; `relation.rank(window_spec="OVER (ORDER BY fare)")`: a window."""

    any_value = _Method("any_value")
    avg = _Method("avg")
    bit_and = _Method("bit_and")
    bit_or = _Method("bit_or")
    bit_xor = _Method("bit_xor")
    bool_and = _Method("bool_and")
    bool_or = _Method("bool_or")
    count = _Method("count", "*")
    favg = _Method("favg")
    first = _Method("first")
    fsum = _Method("fsum")
    geomean = _Method("geomean")
    last = _Method("last")
    max = _Method("max")
    mean = _Method("avg")
    median = _Method("median")
    min = _Method("min")
    mode = _Method("mode")
    product = _Method("product")
    std = _Method("stddev_samp")
    stddev = _Method("stddev_samp")
    stddev_pop = _Method("stddev_pop")
    stddev_samp = _Method("stddev_samp")
    sum = _Method("sum")
    var = _Method("var_samp")
    var_pop = _Method("var_pop")
    var_samp = _Method("var_samp")
    variance = _Method("var_samp")

    def arg_max(
        self,
        arg_column: str,
        value_column: str,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Relation:
        """The first column's value where the second one's is greatest; as the others."""
        return self._call("arg_max", [arg_column, value_column], groups, window_spec, projected_columns)

    def arg_min(
        self,
        arg_column: str,
        value_column: str,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Relation:
        """The first column's value where the second one's is least; as the others."""
        return self._call("arg_min", [arg_column, value_column], groups, window_spec, projected_columns)

    def quantile_cont(
        self,
        expression: str,
        q: float = 0.5,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Relation:
        """The value below which a share of `q` lies, interpolated; as the others."""
        arguments = [expression, quoted_value(q)]
        return self._call("quantile_cont", arguments, groups, window_spec, projected_columns)

    def quantile_disc(
        self,
        expression: str,
        q: float = 0.5,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Relation:
        """The value below which a share of `q` lies, one of those that are there; as the others."""
        arguments = [expression, quoted_value(q)]
        return self._call("quantile_disc", arguments, groups, window_spec, projected_columns)

    quantile = quantile_disc

    def string_agg(
        self,
        expression: str,
        sep: str = ",",
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Relation:
        """Texts put together, `sep` between them; as the others."""
        arguments = [expression, quoted_value(sep)]
        return self._call("string_agg", arguments, groups, window_spec, projected_columns)

    def first_value(self, expression: str, window_spec: str = "", projected_columns: str = "") -> Relation:
        """The value of the frame's first row."""
        return self._call("first_value", [expression], "", window_spec, projected_columns)

    def last_value(self, expression: str, window_spec: str = "", projected_columns: str = "") -> Relation:
        """The value of the frame's last row."""
        return self._call("last_value", [expression], "", window_spec, projected_columns)

    def nth_value(
        self,
        expression: str,
        window_spec: str,
        offset: int,
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Relation:
        """The value of the frame's row of that number, from 1."""
        arguments = [expression, quoted_value(offset)]
        return self._call("nth_value", arguments, "", window_spec, projected_columns, ignore_nulls)

    def lag(
        self,
        expression: str,
        window_spec: str,
        offset: int = 1,
        default_value: str = "NULL",
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Relation:
        """The value `offset` rows before, or `default_value`, which is SQL."""
        arguments = [expression, quoted_value(offset), default_value]
        return self._call("lag", arguments, "", window_spec, projected_columns, ignore_nulls)

    def lead(
        self,
        expression: str,
        window_spec: str,
        offset: int = 1,
        default_value: str = "NULL",
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Relation:
        """The value `offset` rows behind, or `default_value`, which is SQL."""
        arguments = [expression, quoted_value(offset), default_value]
        return self._call("lead", arguments, "", window_spec, projected_columns, ignore_nulls)

    def row_number(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The row's number in its window: `row_number("OVER (ORDER BY fare)")`."""
        return self._call("row_number", [], "", window_spec, projected_columns)

    def rank(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The row's rank in its window, with gaps after equal ones."""
        return self._call("rank", [], "", window_spec, projected_columns)

    def dense_rank(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The row's rank in its window, without gaps."""
        return self._call("dense_rank", [], "", window_spec, projected_columns)

    rank_dense = dense_rank

    def percent_rank(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The row's rank in its window, from 0 to 1."""
        return self._call("percent_rank", [], "", window_spec, projected_columns)

    def cume_dist(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The share of its window's rows that are not behind the row."""
        return self._call("cume_dist", [], "", window_spec, projected_columns)

    def n_tile(self, window_spec: str, num_buckets: int, projected_columns: str = "") -> Relation:
        """Which of so many parts of its window the row is in."""
        return self._call("ntile", [quoted_value(num_buckets)], "", window_spec, projected_columns)

    def _call(
        self,
        function: str,
        arguments: Sequence[str],
        groups: str,
        window: str,
        columns: str = "",
        ignore_nulls: bool = False,
    ) -> Relation:
        call = StatementBuilder().words(f"{function}(")
        call.add_list([piece(argument, "expression") for argument in arguments])
        call.words("IGNORE NULLS)" if ignore_nulls else ")")
        return build_call(self, call, groups, window, columns)
