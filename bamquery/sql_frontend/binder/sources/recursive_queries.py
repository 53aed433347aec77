"""WITH RECURSIVE: a query that names itself, as a first part and a step over the rows before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types import type_groups as types
from bamquery.plan.nodes import Plan, Project, Recursion, Scan
from bamquery.plan.rewriting import columns_of, nodes_of
from bamquery.plan.working_table import WorkingTable
from bamquery.sql_frontend.binder.environment import Environment, NamedQuery
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.functions.coercion import decode
from bamquery.sql_frontend.functions.operators import explicit_cast
from bamquery.sql_frontend.syntax.walking import walk
from bamquery.text.identifiers import fold_case

BindQuery = Callable[[exp.Expr, Environment], Plan]

_OF_ALL_ROWS: Final = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}


def names_itself(query: exp.CTE) -> bool:
    """Whether a query that WITH names has its own name in FROM."""
    return _names(query.this, query.args["alias"].this.name)


def bind_recursive(
    query: exp.CTE, sql: str, environment: Environment, bind: BindQuery, named: Callable[[Plan], Plan]
) -> Plan:
    """The plan of a query that names itself; `named` gives a plan the names that WITH says.

    Raises:
        SqlError: it has not the form `first part UNION [ALL] step`, or one of these is wrong.
    """
    alias, union = query.args["alias"], query.this
    name = alias.this.name
    while isinstance(union, exp.Subquery) and not any(union.args.get(key) for key in _OF_ALL_ROWS):
        union = union.this
    with errors_at(sql, alias):
        if not isinstance(union, exp.Union) or _names(union.this, name):
            raise ValueError(
                f'"{name}" names itself: WITH RECURSIVE needs a query that does not, '
                "UNION or UNION ALL, and one that does"
            )
    for key, word in _OF_ALL_ROWS.items():
        with errors_at(sql, union.args.get(key)):
            if union.args.get(key) is not None:
                raise ValueError(f"{word} of a recursive query as a whole is not supported: put it outside")
    with errors_at(sql, union):
        if union.args.get("by_name"):
            raise ValueError("a recursive query cannot be a UNION BY NAME")
    if union.args.get("with_") is not None:
        with errors_at(sql, union.args["with_"]):
            raise ValueError("a recursive query cannot begin with a WITH of its own: put it before")
    first = named(_settle_types(bind(union.this, environment)))
    table = WorkingTable(name, pa.schema([pa.field(field.name, field.type) for field in first.fields]))
    before = NamedQuery(name, Scan(table, tuple(range(len(first.fields)))), None)
    step = bind(union.expression, environment.with_query(before))
    if not _scans(step, table):  # the name in it is of another query, within
        return named(bind(query.this, environment))
    with errors_at(sql, union.expression):
        if len(step.fields) != len(first.fields):
            raise ValueError(
                f"both parts of a recursive query need as many columns: there are {len(first.fields)} "
                f"and {len(step.fields)}"
            )
        step = _cast_columns(step, [field.type for field in first.fields], first)
    return Recursion(first, step, table, bool(union.args.get("distinct")))


def _names(node: exp.Expr, name: str) -> bool:
    return any(
        isinstance(table, exp.Table)
        and isinstance(table.this, exp.Identifier)
        and fold_case(table.name) == fold_case(name)
        for table in walk(node)
    )


def _scans(plan: Plan, table: WorkingTable) -> bool:
    return any(isinstance(node, Scan) and node.source is table for node in nodes_of(plan))


def _settle_types(plan: Plan) -> Plan:
    """The first part, by which the types of all rows go: without dictionaries, NULL alone an INTEGER."""
    kinds = [types.value_type(field.type) for field in plan.fields]
    return _cast_columns(plan, [pa.int32() if pa.types.is_null(kind) else kind for kind in kinds], plan)


def _cast_columns(plan: Plan, kinds: Sequence[pa.DataType], names: Plan) -> Plan:
    columns = tuple(
        column if column.type == kind else explicit_cast(decode(column), kind)
        for column, kind in zip(columns_of(plan), kinds, strict=True)
    )
    return Project(plan, columns, tuple(field.name for field in names.fields))
