"""INSERT: the source's columns put in the table's order and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from bamquery.data_types import type_groups as types
from bamquery.errors import CatalogError
from bamquery.plan.bound_statements import Insert
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Plan, Project, SingleRow, Source
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.queries.query_binder import bind_query
from bamquery.sql_frontend.binder.sources.from_clause import bind_table, bind_values, catalog_of
from bamquery.sql_frontend.binder.statements.column_defaults import Defaults
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.functions.operators import explicit_cast
from bamquery.sql_frontend.syntax.positions import start
from bamquery.text.identifiers import fold_case, suggestion

_CLAUSES: Final = ("with_", "order", "limit", "offset")
"""What a query in parentheses may have of its own."""


def bind_insert(tree: exp.Insert, sql: str, catalog: Catalog) -> Insert:
    """INSERT INTO table [(columns) | BY NAME] SELECT, VALUES or DEFAULT VALUES.

    Columns that are not named get their default.

    Raises:
        SqlError: unknown table or columns, a wrong number of values, types that cannot be cast.
    """
    target = tree.this
    named = list(target.expressions) if isinstance(target, exp.Schema) else []
    table = target.this if isinstance(target, exp.Schema) else target
    source = bind_table(table.name, table, sql, catalog)
    with errors_at(sql, table):
        try:
            defaults = Defaults(source, catalog_of(table, catalog).rules(table.name), catalog.fold_constants)
        except CatalogError as error:
            raise ValueError(str(error)) from error
    by_name = bool(tree.args.get("by_name"))
    query = tree.expression
    with errors_at(sql, target):
        if by_name and named:
            raise ValueError("BY NAME takes no columns: the query names them")
    if tree.args.get("default"):
        with errors_at(sql, target):
            if named:
                raise ValueError("DEFAULT VALUES takes no columns")
        return Insert(source.name, arrange_columns(SingleRow(), [], target, sql, defaults))
    while isinstance(query, exp.Subquery) and not any(query.args.get(key) for key in _CLAUSES):
        query = query.this
    if isinstance(query, exp.Values):
        with errors_at(sql, query):
            if by_name:
                raise ValueError("BY NAME is for SELECT: VALUES have no names")
        positions = target_positions(source, named, sql)
        check_count(query, len(query.expressions[0].expressions), positions, source, sql)
        targets = [types.value_type(source.schema.field(position).type) for position in positions]
        plan = bind_values(_with_defaults(query, positions, defaults), sql, catalog.fold_constants, targets)
    else:
        plan = bind_query(query, sql, catalog)
        if by_name:
            places = [exp.to_identifier(field.name) for field in plan.fields]
            for place in places:
                place.meta.update(_place_of(query, sql))
            positions = target_positions(source, places, sql)
        else:
            positions = target_positions(source, named, sql)
        check_count(query, len(plan.fields), positions, source, sql)
    return Insert(source.name, arrange_columns(plan, positions, query, sql, defaults))


def _place_of(query: exp.Expr, sql: str) -> dict[str, int]:
    offset = start(query)
    return {} if offset is None else {"start": offset}


def _with_defaults(query: exp.Values, positions: Sequence[int], defaults: Defaults) -> exp.Values:
    """VALUES with what DEFAULT stands for."""
    for row in query.expressions:
        if not isinstance(row, exp.Tuple):
            continue
        for position, cell in zip(positions, list(row.expressions), strict=False):
            if isinstance(cell, exp.Var) and cell.name.upper() == "DEFAULT":
                value = defaults.node(position)
                value.meta.update({k: v for k, v in cell.meta.items() if k == "start"})
                cell.replace(exp.Paren(this=value))
    return query


def target_positions(source: Source, named: Sequence[exp.Expr], sql: str) -> list[int]:
    """For each column of the source, which of the table's it becomes."""
    if not named:
        return list(range(len(source.schema)))
    by_name = {fold_case(name): position for position, name in enumerate(source.schema.names)}

    def position(node: exp.Expr) -> int:
        with errors_at(sql, node):
            if fold_case(node.name) not in by_name:
                hint = suggestion(node.name, source.schema.names)
                raise ValueError(f'table "{source.name}" has no column "{node.name}".{hint}')
            return by_name[fold_case(node.name)]

    positions = list(apply_to_each(position, named, sql))
    for index, node in enumerate(named):
        with errors_at(sql, node):
            if positions[index] in positions[:index]:
                raise ValueError(f'column "{node.name}" is named twice')
    return positions


def check_count(node: exp.Expr, given: int, positions: Sequence[int], source: Source, sql: str) -> None:
    """Refuse another number of columns than the table takes."""
    with errors_at(sql, node):
        if given != len(positions):
            wanted = f"{len(positions)} column{'s' * (len(positions) != 1)}"
            raise ValueError(f'table "{source.name}" takes {wanted} here, not {given}')


def arrange_columns(
    plan: Plan, positions: Sequence[int], node: exp.Expr, sql: str, defaults: Defaults
) -> Plan:
    """The plan's columns, of which number i becomes the table's number `positions[i]`, in its types."""
    source = defaults.source
    fields = [(field.name, field.type) for field in source.schema]
    given = {position: index for index, position in enumerate(positions)}

    def column(position: int) -> Expression:
        name, kind = fields[position]
        if position not in given:
            return defaults.value(position)
        field = plan.fields[given[position]]
        column = ColumnRef(given[position], field.name, field.type)
        if field.type == kind:
            return column
        with errors_at(sql, node):
            try:
                return explicit_cast(column, kind)
            except ValueError as error:
                raise ValueError(f'column "{name}" of table "{source.name}": {error}') from None

    columns = tuple(apply_to_each(column, range(len(fields)), sql))
    names = tuple(name for name, _ in fields)
    straight = tuple(ColumnRef(i, name, kind) for i, (name, kind) in enumerate(fields))
    return plan if columns == straight else Project(plan, columns, names)
