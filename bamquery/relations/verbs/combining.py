"""Relations made from two: joins and set operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from bamquery.relations.base import RelationBase
from bamquery.relations.definition import OTHER, SELF
from bamquery.relations.expressions.expression import ConditionLike, JoinKind
from bamquery.relations.expressions.operators import Operators
from bamquery.relations.expressions.pieces import one_expression, piece
from bamquery.relations.expressions.sql_literals import quoted_name
from bamquery.relations.expressions.statement_builder import StatementBuilder
from bamquery.relations.verbs.statements import source_statement
from bamquery.text.identifiers import fold_case, suggestion

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation

_JOINS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "inner": "INNER JOIN",
        "left": "LEFT JOIN",
        "right": "RIGHT JOIN",
        "full": "FULL JOIN",
        "outer": "FULL JOIN",
        "semi": "SEMI JOIN",
        "anti": "ANTI JOIN",
        "cross": "CROSS JOIN",
        "asof": "ASOF JOIN",
        "asof_left": "ASOF LEFT JOIN",
    }
)


class RelationPairs(RelationBase):
    """Methods that take another relation of the same connection; none of them runs anything."""

    def join(
        self,
        other: RelationBase,
        on: ConditionLike | Sequence[str | Operators] | None = None,
        how: JoinKind = "inner",
        *,
        using: str | Sequence[str] | None = None,
    ) -> Relation:
        """Pairs of a row of this relation and one of another.

        Args:
            other: of the same connection.
            on: names of columns that both have and that are to be equal, which the answer has once; or a
                condition over the columns of both. There a side's columns can be told by the side's `alias`:
                a table's name, or what `set_alias` said; a side without one, or where both have the same,
                is `self` or `other`.
            how: `inner`: the pairs. `left`, `right`, `full` (or `outer`): also the rows of that side, or of
                both, without a partner. `semi`, `anti`: the rows of this relation with, and without, a
                partner. `cross`: all pairs. `asof`, `asof_left`: of a row's partners the nearest only, by
                one >=, >, <= or < in the condition, or by >= of the last of several names.
            using: names as in `on`, and nothing else.

        Raises:
            SqlError: the condition cannot be understood; shows where.
            CatalogError: a name is not a column of both.
            TypeError, ValueError: there is no such kind of join, or it has no condition, or must have none.
        """
        join, text = self._join_clause(other, how)
        if how == "cross":
            if on is not None or using is not None:
                raise TypeError("a cross join has all pairs: it takes no condition")
            return self._query_over(text, other)
        if using is not None:
            if on is not None:
                raise TypeError("a join takes on or using, not both")
            names: Sequence[str] | None = [using] if isinstance(using, str) else list(using)
        else:
            names = None if on is None else self._using_columns(other, on)
        if names is not None:
            listed = ", ".join(quoted_name(self._require_in_both(other, name)) for name in names)
            if not listed:
                raise TypeError("on: name at least one column")
            return self._query_over(text.words(f"USING ({listed})"), other)
        if on is None:
            raise TypeError(f'a join ({join}) takes on or using: names or a condition; how="cross" neither')
        condition = piece(on, "on")
        if isinstance(on, str):
            one_expression(condition, "on")
        return self._query_over(text.words("ON (").piece(condition).words(")"), other)

    def cross(self, other: RelationBase) -> Relation:
        """All pairs of a row of this relation and one of another."""
        return self.join(other, how="cross")

    def union(self, other: RelationBase, *, distinct: bool = False, by_name: bool = False) -> Relation:
        """The rows of both; as in DuckDB all of them, unless they are to be `distinct`.

        Columns go together by their places, or with `by_name` by their names; one that a side lacks is null.

        Raises:
            SqlError: the columns do not go together.
        """
        return self._set_operation("UNION", other, distinct, " BY NAME" if by_name else "")

    def intersect(self, other: RelationBase, *, distinct: bool = False) -> Relation:
        """The rows that both have: as often as both have them, or once with `distinct`."""
        return self._set_operation("INTERSECT", other, distinct)

    def except_(self, other: RelationBase, *, distinct: bool = False) -> Relation:
        """The rows that the other has not: as many times as are left, or once with `distinct`."""
        return self._set_operation("EXCEPT", other, distinct)

    def _set_operation(self, operation: str, other: Any, distinct: bool, how: str = "") -> Relation:
        kind = "" if distinct else " ALL"
        text = f"SELECT * FROM self {operation}{kind}{how} SELECT * FROM other"
        return self._query_over(StatementBuilder().words(text), _relation(other))

    def _join_clause(self, other: Any, how: str) -> tuple[str, StatementBuilder]:
        """The kind of join as SQL, and the statement up to its condition."""
        if how not in _JOINS:
            raise ValueError(
                f"there is no {how!r} join.{suggestion(str(how), _JOINS)} Joins: {', '.join(_JOINS)}"
            )
        left, right = self._name, _relation(other)._name
        if fold_case(left) == fold_case(right) or fold_case(left) == OTHER or fold_case(right) == SELF:
            left = right = ""
        join = _JOINS[how]
        return join, StatementBuilder().words(
            f"SELECT * FROM {source_statement(left, SELF)} {join} {source_statement(right, OTHER)}"
        )

    def _using_columns(self, other: RelationBase, on: Any) -> list[str] | None:
        """The columns that are named; None where `on` is a condition."""
        if isinstance(on, str | Operators):
            name = _plain_name(on)
            known = {fold_case(own) for own in self._names} & {fold_case(own) for own in other._names}
            return [name] if name is not None and fold_case(name) in known else None
        if not isinstance(on, Iterable):
            raise TypeError(f"on is a condition, or names of columns, not {type(on).__name__}")
        names = [_plain_name(one) for one in on]
        if any(name is None for name in names):
            raise TypeError("on is one condition, or a list of names: join several conditions with &")
        return [name for name in names if name is not None]

    def _require_in_both(self, other: RelationBase, name: str) -> str:
        other._column(name, "on, of the other relation")
        return self._column(name, "on")


def _plain_name(what: Any) -> str | None:
    """The name that is all of an expression; None for any other."""
    if isinstance(what, str):
        return what
    text = what.sql if isinstance(what, Operators) else ""
    inside = text[1:-1].replace('""', "")
    return text[1:-1].replace('""', '"') if text[:1] == text[-1:] == '"' and '"' not in inside else None


def _relation(what: Any) -> RelationBase:
    if not isinstance(what, RelationBase):
        raise TypeError(
            f"other is a relation, not {type(what).__name__}: con.from_df() and con.table() make one"
        )
    return what
