"""What columns are given where a statement names no value for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types import type_groups as types
from bamquery.errors import SqlError
from bamquery.plan.expressions import Expression, Literal
from bamquery.plan.nodes import Source
from bamquery.sql_frontend.binder.catalog import FoldConstants
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.functions.coercion import coerce
from bamquery.sql_frontend.functions.operators import explicit_cast, literal
from bamquery.sql_frontend.parser.parser import parse
from bamquery.sql_frontend.sql_types import type_name
from bamquery.storage.fragments.schema_evolution import ColumnRule


class Defaults:
    """The defaults of a table's columns, null where a column has none."""

    def __init__(self, source: Source, rules: Sequence[ColumnRule], fold: FoldConstants) -> None:
        self.source = source
        self._rules = rules
        self._fold = fold

    def node(self, column: int) -> exp.Expr:
        """The default as a syntax tree without places in any text."""
        default = self._rules[column].default if self._rules else None
        return exp.Null() if default is None else parse_default(default)

    def value(self, column: int) -> Expression:
        """The default as a constant of the column's type.

        Raises:
            SqlError: it is no value of that type.
        """
        kind = self.source.schema.field(column).type
        default = self._rules[column].default if self._rules else None
        if default is None:
            return literal(None, kind)
        try:
            return bind_default(parse_default(default), "", kind, self._fold)
        except ValueError as error:
            name = self.source.schema.field(column).name
            raise SqlError(f'the default of column "{name}", {default}: {error}') from error


def default_values(
    schema: pa.Schema, rules: Sequence[ColumnRule], fold: FoldConstants
) -> Mapping[str, pa.Scalar[Any]]:
    """By name, the defaults of the columns that have one.

    Raises:
        SqlError: one is no value of its column's type.
    """
    ruled = zip(schema, rules, strict=False)
    given = {field: rule.default for field, rule in ruled if rule.default is not None}
    values = {}
    for field, default in given.items():
        value = bind_default(parse_default(default), "", field.type, fold)
        assert isinstance(value, Literal), "statements give defaults to columns of SQL's types only"
        values[field.name] = value.value
    return values


def parse_default(text: str) -> exp.Expr:
    """The syntax tree of a default's text."""
    (tree,) = parse(f"SELECT {text}")
    (node,) = tree.expressions
    for below in node.walk():
        for key in ("start", "end", "line", "col"):
            below.meta.pop(key, None)
    value: exp.Expr = node.pop()
    return value


def bind_default(node: exp.Expr, sql: str, kind: pa.DataType, fold: FoldConstants) -> Expression:
    """A default's value, which no column can be part of.

    Raises:
        SqlError, ValueError: it names a column, or is no value of the type.
    """
    bound = ExpressionBinder(sql, Scope(), "DEFAULT").bind(node)
    target = types.value_type(kind)
    converted = coerce(bound, target) if isinstance(bound, Literal) else explicit_cast(bound, target)
    value = fold(converted)
    if not isinstance(value, Literal):
        raise ValueError(f"it is not a value of type {type_name(kind)} that is known beforehand")
    return value if kind == target else explicit_cast(value, kind)
