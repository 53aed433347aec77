"""SUMMARIZE: for each column of a table or query what describes its values, as one aggregation."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types import type_groups as types
from bamquery.plan.bound_statements import ColumnFigures, Summarize
from bamquery.plan.nodes import Field, Plan, Project
from bamquery.plan.rewriting import columns_of
from bamquery.plan.rules.merge_projects import merge_projections
from bamquery.plan.rules.prune_columns import prune_columns
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.environment import NOTHING_AROUND, NamedQuery
from bamquery.sql_frontend.binder.queries.query_binder import bind_query
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.text.identifiers import unique_names

_COLUMNS_AT_ONCE: Final = 16
"""Distinct values of each column come together as rows that have the figures of all: more at once take
longer than another look at the table."""
_SOURCE: Final = "summarized"


def bind_summarize(tree: syntax.Summarize, sql: str, catalog: Catalog) -> Summarize:
    """The plans of all figures.

    Raises:
        SqlError: the table or query cannot be bound.
    """
    query = tree.this
    if isinstance(query, exp.Table):
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=query))
    plan = bind_query(query, sql, catalog)
    columns, names = columns_of(plan), unique_names([field.name for field in plan.fields])
    figures = []
    for first in range(0, len(names), _COLUMNS_AT_ONCE):
        some = slice(first, first + _COLUMNS_AT_ONCE)
        narrow = prune_columns(merge_projections(Project(plan, columns[some], tuple(names[some]))))
        figures.append(_bind_figures(narrow, sql, catalog))
    return Summarize(tuple(figures))


def _bind_figures(plan: Plan, sql: str, catalog: Catalog) -> ColumnFigures:
    around = NOTHING_AROUND.with_query(NamedQuery(_SOURCE, plan, None))
    calls = [_call("count")]
    fields, figures, ordered = [], [], []
    for name, own in ((field.name, field.type) for field in plan.fields):
        kind = pa.int32() if pa.types.is_null(own) else own
        column = exp.Column(this=exp.to_identifier(name, quoted=True))
        named = _figures(column, types.value_type(kind))
        fields.append(Field(name, kind))
        figures.append(tuple(named))
        calls += named.values()
        if _is_measured(types.value_type(kind)):
            ordered.append((name, bind_query(_sorted_values(column), sql, catalog, around)))
    summary = exp.Select(expressions=calls, from_=_from_clause())
    return ColumnFigures(
        tuple(fields), tuple(figures), bind_query(summary, sql, catalog, around), tuple(ordered)
    )


def _from_clause() -> exp.From:
    return exp.From(this=exp.Table(this=exp.to_identifier(_SOURCE)))


def _sorted_values(column: exp.Column) -> exp.Select:
    """The column's values without nulls, the least first."""
    present = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
    return exp.Select(
        expressions=[column.copy()],
        from_=_from_clause(),
        where=exp.Where(this=present),
        order=exp.Order(expressions=[exp.Ordered(this=column.copy(), nulls_first=False)]),
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_measured(kind: pa.DataType) -> bool:
    """Whether values of the type have quartiles: numbers, dates and times."""
    return _is_number(kind) or pa.types.is_temporal(kind)


def _figures(column: exp.Column, kind: pa.DataType) -> dict[str, exp.Expr]:
    """What is computed of a column, by its name in the answer."""
    found: dict[str, exp.Expr] = {"values": _call("count", column)}
    found["approx_unique"] = _call("count", exp.Distinct(expressions=[column.copy()]))
    # Of truth values the greatest is whether any is true.
    least, most = ("bool_and", "bool_or") if pa.types.is_boolean(kind) else ("min", "max")
    found["min"], found["max"] = _call(least, column), _call(most, column)
    if _is_number(kind):
        found["avg"], found["std"] = _call("avg", column), _call("stddev", column)
    return found


def _call(function: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=function, expressions=[argument.copy() for argument in arguments])
