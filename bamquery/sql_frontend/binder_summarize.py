"""SUMMARIZE: for each column of a table or query what describes its values, as one aggregation."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from bamquery.naming import unique_names
from bamquery.plan import types
from bamquery.plan.nodes import Field
from bamquery.plan.statements import Summarize
from bamquery.sql_frontend import syntax
from bamquery.sql_frontend.binder_query import bind_query
from bamquery.sql_frontend.catalog import Catalog


def bind_summarize(tree: syntax.Summarize, sql: str, catalog: Catalog) -> Summarize:
    """The plan of all figures.

    Raises:
        SqlError: the table or query cannot be bound.
    """
    query = tree.this
    if isinstance(query, exp.Table):
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=query))
    fields = bind_query(query, sql, catalog).fields
    fields = tuple(
        Field(name, pa.int32() if pa.types.is_null(field.type) else field.type)
        for name, field in zip(unique_names([field.name for field in fields]), fields, strict=True)
    )
    calls = [_call("count")]
    figures = []
    ordered = []
    for field in fields:
        column = exp.Column(this=exp.to_identifier(field.name, quoted=True))
        named = _figures(column, types.value_type(field.type))
        figures.append(tuple(named))
        calls += named.values()
        if _is_measured(types.value_type(field.type)):
            ordered.append((field.name, bind_query(_in_order(column, query), sql, catalog)))
    summary = exp.Select(expressions=calls, from_=_from(query))
    return Summarize(fields, tuple(figures), bind_query(summary, sql, catalog), tuple(ordered))


def _from(query: exp.Expr) -> exp.From:
    return exp.From(this=exp.Subquery(this=query.copy()))


def _in_order(column: exp.Column, query: exp.Expr) -> exp.Select:
    """The column's values without nulls, the least first."""
    present = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
    return exp.Select(
        expressions=[column.copy()],
        from_=_from(query),
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
