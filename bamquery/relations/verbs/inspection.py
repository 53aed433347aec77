"""What a relation looks like: its columns, how many rows it has, and figures about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow as pa

from bamquery.plan.nodes import Limit
from bamquery.relations.base import RelationBase
from bamquery.relations.duckdb_api.missing_methods import MISSING
from bamquery.relations.expressions.expression import ColumnLike
from bamquery.relations.expressions.pieces import key_piece
from bamquery.relations.expressions.sql_literals import quoted_name
from bamquery.relations.expressions.statement_builder import StatementBuilder
from bamquery.relations.frames.python_values import python_rows, whole_number
from bamquery.session.result import Result
from bamquery.text.identifiers import fold_case, suggestion

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation

_SHOWN_ROWS: Final = 20
_SHOWN_WIDTH: Final = 120
_FIGURES: Final = ("count", "mean", "stddev", "min", "max", "median")


class RelationInspection(RelationBase):
    """Methods of containers, and `describe` and its like."""

    @property
    def dtypes(self) -> list[str]:
        """The same as `types`."""
        return self.types

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns; counts the rows."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        """How many rows there are: a query that counts them."""
        counted = self._query_over(StatementBuilder().words("SELECT count(*) FROM self"))
        with counted.run() as result:
            return int(result.table().column(0)[0].as_py())

    def __bool__(self) -> NoReturn:
        raise TypeError("a relation is neither true nor false: ask for len(relation), or whether it is None")

    def __contains__(self, name: object) -> bool:
        """Whether a column has that name, without regard to case."""
        return isinstance(name, str) and fold_case(name) in map(fold_case, self._names)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as `fetchall` gives them, in a run of its own, batch by batch.

        `list(relation)` asks for `len` first, which counts them: `fetchall()` does not.
        """
        return _rows(self.run())

    def __getitem__(self, names: str | Sequence[str]) -> Relation:
        """The relation of one column, or of several: `relation["a"]`, `relation[["a", "b"]]`.

        Raises:
            CatalogError: there is no such column. TypeError: these are no names.
        """
        if not isinstance(names, (str, list, tuple)) or not names:
            raise TypeError(
                "a relation takes a column's name or a list of names in brackets; rows: filter(), limit()"
            )
        wanted = [names] if isinstance(names, str) else names
        listed = ", ".join(quoted_name(self._column(name)) for name in wanted)
        return self._query_over(StatementBuilder().words(f"SELECT {listed} FROM self"))

    if not TYPE_CHECKING:  # a misspelt method is for type checkers to find

        def __getattr__(self, name: str) -> NoReturn:
            # Only where there is nothing of that name: says what to take instead.
            message = f"a relation has no attribute {name!r}"
            if name in MISSING:
                raise AttributeError(f"{message}: {MISSING[name]}")
            if not name.startswith("_") and name in self:
                raise AttributeError(
                    f"{message}; the column is relation[{name!r}], or col({name!r}) in expressions"
                )
            raise AttributeError(f"{message}.{suggestion(name, dir(type(self)))}")

    def value_counts(self, column: ColumnLike) -> Relation:
        """Each value of a column and how often it is there; as in DuckDB, null 0 times."""
        text = key_piece(column, "column")
        statement = StatementBuilder().words("SELECT").piece(text).words(", count(").piece(text)
        return self._query_over(statement.words(") FROM self GROUP BY").piece(text))

    def describe(self) -> Relation:
        """Count, mean, standard deviation, least and greatest value and median of each column: six rows.

        Of columns that are no numbers, only the count, the least and the greatest value, as text.
        """
        inner, outer = [], []
        for place, (name, field) in enumerate(zip(self._names, self._fields, strict=True)):
            column = quoted_name(name)
            calls = _figures(column, field.type)
            inner += [f"{call} AS c{place}_{figure}" for figure, call in calls.items()]
            cases = " ".join(f"WHEN '{figure}' THEN c{place}_{figure}" for figure in calls)
            outer.append(f"CASE named.aggr {cases} END AS {column}")
        rows = ", ".join(f"({number}, '{figure}')" for number, figure in enumerate(_FIGURES))
        text = (
            f"SELECT named.aggr, {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM self) AS figures, "
            f"(VALUES {rows}) AS named(number, aggr) ORDER BY named.number"
        )
        return self._query_over(StatementBuilder().words(text))

    def summarize(self) -> Relation:
        """What SUMMARIZE says: one row a column, computed now."""
        return self._execute_over(StatementBuilder().words("SUMMARIZE SELECT * FROM self"))

    def show(self, max_rows: int = _SHOWN_ROWS, max_width: int = _SHOWN_WIDTH) -> None:
        """Print the first rows as a table; only these are computed, as far as the query allows."""
        print(self.preview(max_rows, max_width))  # noqa: T201 (it is what the method is for)

    def preview(self, max_rows: int = _SHOWN_ROWS, max_width: int = _SHOWN_WIDTH) -> str:
        """The first rows as a table, as `show` prints them; or what a statement has to say."""
        from bamquery.output.text_table import preview  # noqa: PLC0415 (programs rarely look)

        if self.message:
            return self.message
        rows = whole_number(max_rows, "max_rows")
        with self._session.run(Limit(self._plan, rows + 1)) as result:
            return preview(result.table(), rows, max_width)


def _figures(column: str, kind: pa.DataType) -> dict[str, str]:
    """The calls of each of the figures that a column of this type has."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    target = "DOUBLE" if number else "VARCHAR"
    calls = {figure: f"CAST({figure}({column}) AS {target})" for figure in ("count", "min", "max")}
    if number:
        calls |= {
            "mean": f"CAST(avg({column}) AS DOUBLE)",
            "stddev": f"CAST(stddev_samp({column}) AS DOUBLE)",
            "median": f"CAST(median({column}) AS DOUBLE)",
        }
    return calls


def _rows(result: Result) -> Iterator[tuple[Any, ...]]:
    with result:
        for batch in result:
            yield from python_rows(batch)
