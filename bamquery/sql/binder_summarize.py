"""SUMMARIZE: for each column of a table or query what describes its values, as one aggregation."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.plan import types
from bamquery.plan.nodes import Field
from bamquery.plan.statements import Summarize
from bamquery.sql import syntax
from bamquery.sql.binder_query import bind_query
from bamquery.sql.catalog import Catalog
from bamquery.sql.scope import unique_names

_QUARTILES: Final = (("q25", "0.25"), ("q50", "0.5"), ("q75", "0.75"))


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
    for field in fields:
        column = exp.Column(this=exp.to_identifier(field.name, quoted=True))
        named = _figures(column, types.value_type(field.type))
        figures.append(tuple(named))
        calls += named.values()
    summary = exp.Select(expressions=calls, from_=exp.From(this=exp.Subquery(this=query.copy(), alias=None)))
    return Summarize(fields, tuple(figures), bind_query(summary, sql, catalog))


def _figures(column: exp.Column, kind: pa.DataType) -> dict[str, exp.Expr]:
    """What is computed of a column, by its name in the answer."""
    found: dict[str, exp.Expr] = {"values": _call("count", column)}
    found["approx_unique"] = _call("count", exp.Distinct(expressions=[column.copy()]))
    # Of truth values the greatest is whether any is true.
    least, most = ("bool_and", "bool_or") if pa.types.is_boolean(kind) else ("min", "max")
    found["min"], found["max"] = _call(least, column), _call(most, column)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if is_number:
        found["avg"], found["std"] = _call("avg", column), _call("stddev", column)
    if is_number or pa.types.is_temporal(kind):
        for name, share in _QUARTILES:
            found[name] = _call("quantile_disc", column, exp.Literal.number(share))
    return found


def _call(function: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=function, expressions=[argument.copy() for argument in arguments])
