"""Rows of a stored table by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.sources.scan_sources import FileSource, StoredTable
from bamquery.plan.expressions import Call, ColumnRef, Members
from bamquery.plan.nodes import ROW_NUMBER, Plan, Project, Scan
from bamquery.relations.base import RelationBase
from bamquery.relations.expressions.sql_literals import quoted_name
from bamquery.relations.expressions.statement_builder import StatementBuilder
from bamquery.text.identifiers import unique_names

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation

_ROW: Final = "row"
_PLACE: Final = "place"


class RelationTake(RelationBase):
    """A method of relations whose rows are those of a table."""

    def take(self, rows: Any, columns: Sequence[str] | None = None) -> Relation:
        """The table's rows of those numbers, in the order given: `con.table("trips").take([7, 0, 7])`.

        Numbers are those of SQL's `rowid`: places in the table's version, from 0. Of each column only what
        holds these rows is read, if that is the cheaper way. On a CPU only, as `rowid`.

        Args:
            rows: numbers, as often as a row is wanted: a list, a range, an array of numpy or Arrow.
            columns: names; None: all.

        Raises:
            IndexError: a number is negative, or the table has no such row.
            TypeError: these are no whole numbers, or the relation is not a table's rows, all of them.
            CatalogError: there is no such column.
        """
        if isinstance(columns, str):
            raise TypeError("columns is a list of names, not one: take(rows, ['fare'])")
        listed = self._names if columns is None else [self._column(name, "columns") for name in columns]
        if not listed:
            raise TypeError("columns: name at least one")
        table = _stored_table(self._plan)
        numbers = _checked_numbers(rows, table)
        if (np.diff(numbers) > 0).all():  # in the order of the table, each once: nothing to be put in order
            names = self._names
            places = [names.index(column) for column in listed]
            plan = _columns_of(_with_condition(self._plan, table, numbers), places, listed)
            return self._derive(plan, "")
        name = unique_names([*self._names, ROW_NUMBER])[-1]
        numbered = self._derive(_with_numbers(self._plan, table, name), "")
        chosen = self._derive(_table_plan({_ROW: numbers, _PLACE: np.arange(len(numbers))}), "")
        wanted = ", ".join(f"self.{quoted_name(column)}" for column in listed)
        text = (
            f"SELECT {wanted} FROM other JOIN self ON self.{quoted_name(name)} = other.{quoted_name(_ROW)} "
            f"ORDER BY other.{quoted_name(_PLACE)}"
        )
        return numbered._query_over(StatementBuilder().words(text), chosen)


def _stored_table(plan: Plan) -> StoredTable:
    """The table whose rows a plan gives, all of them in their order.

    Raises:
        TypeError: there is none.
    """
    while isinstance(plan, Project):
        plan = plan.child
    if isinstance(plan, Scan) and isinstance(plan.source, StoredTable) and not plan.predicates:
        return plan.source
    raise TypeError(
        "take is for the rows of a stored table, con.table(name).take(rows): rows of queries, views and "
        "files have no numbers; limit(count, offset) gives some of them"
    )


def _with_numbers(plan: Plan, table: StoredTable, name: str) -> Plan:
    """The same rows with their numbers as a last column of that name."""
    if isinstance(plan, Scan):
        numbered = table.with_row_numbers()
        return replace(plan, source=numbered, columns=(*plan.columns, numbered.row_number))
    assert isinstance(plan, Project)
    child = _with_numbers(plan.child, table, name)
    number = ColumnRef(len(child.fields) - 1, name, pa.int64())
    return Project(child, (*plan.expressions, number), (*plan.names, name))


def _with_condition(plan: Plan, table: StoredTable, numbers: NDArray[np.int64]) -> Plan:
    """Of the rows those with the numbers, which ascend."""
    if isinstance(plan, Project):
        return replace(plan, child=_with_condition(plan.child, table, numbers))
    assert isinstance(plan, Scan)
    numbered = table.with_row_numbers()
    number = ColumnRef(numbered.row_number, ROW_NUMBER, pa.int64())
    condition = Call("in", (number, Members(pa.array(numbers))), pa.bool_())
    return replace(plan, source=numbered, predicates=(condition,))


def _columns_of(plan: Plan, places: Sequence[int], names: Sequence[str]) -> Plan:
    """Some of its columns, under these names."""
    if isinstance(plan, Scan) and len(set(places)) == len(places):
        narrow = replace(plan, columns=tuple(plan.columns[place] for place in places))
        if [field.name for field in narrow.fields] == list(names):
            return narrow  # as rules would have it
    chosen = (ColumnRef(place, plan.fields[place].name, plan.fields[place].type) for place in places)
    return Project(plan, tuple(chosen), tuple(names))


def _checked_numbers(rows: Any, table: StoredTable) -> NDArray[np.int64]:
    try:
        found = rows.to_numpy(zero_copy_only=False) if isinstance(rows, pa.Array) else np.asarray(rows)
    except (TypeError, ValueError) as error:
        raise TypeError(f"rows is a list of whole numbers: {error}") from None
    if found.ndim != 1 or (found.dtype.kind not in "iu" and len(found)):
        what = {0: "one value", 1: f"values of {found.dtype}"}.get(found.ndim, "several in each place")
        raise TypeError(f"rows is a list of whole numbers without nulls, not {what}")
    wrong = found[(found < 0) | (found >= table.rows)] if len(found) else found
    if len(wrong):
        there = f"its rows are 0 to {table.rows - 1:,}" if table.rows else "it has no rows"
        raise IndexError(f'rows: there is no row {wrong[0]} in table "{table.name}": {there}')
    return found.astype(np.int64)


def _table_plan(columns: dict[str, NDArray[np.int64]]) -> Plan:
    from bamquery.storage.ingest.opening import open_source  # noqa: PLC0415 (few relations need it)

    source = FileSource(open_source(pa.table(dict(columns)), by_need=True))
    return Scan(source, tuple(range(len(columns))))
