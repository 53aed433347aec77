"""INSERT: the source's columns put in the table's order and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from bamquery.naming import fold, suggestion
from bamquery.plan import types
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Insert, Plan, Project, Source
from bamquery.sql.binder_query import bind_query
from bamquery.sql.binder_sources import bind_table, bind_values
from bamquery.sql.catalog import Catalog
from bamquery.sql.failures import each, placed
from bamquery.sql.operators import explicit_cast, literal

_CLAUSES: Final = ("with_", "order", "limit", "offset")
"""What a query in parentheses may have of its own."""


def bind_insert(tree: exp.Insert, sql: str, catalog: Catalog) -> Insert:
    """INSERT INTO table [(columns)] SELECT or VALUES; columns not named get null.

    Raises:
        SqlError: unknown table or columns, a wrong number of values, types that cannot be cast.
    """
    target = tree.this
    named = list(target.expressions) if isinstance(target, exp.Schema) else []
    table = target.this if isinstance(target, exp.Schema) else target
    source = bind_table(table.name, table, sql, catalog)
    positions = _positions(source, named, sql)
    query = tree.expression
    while isinstance(query, exp.Subquery) and not any(query.args.get(part) for part in _CLAUSES):
        query = query.this
    if isinstance(query, exp.Values):
        _check_count(query, len(query.expressions[0].expressions), positions, source, sql)
        targets = [types.value_type(source.schema.field(position).type) for position in positions]
        plan = bind_values(query, sql, targets)
    else:
        plan = bind_query(query, sql, catalog)
        _check_count(query, len(plan.fields), positions, source, sql)
    return Insert(source.name, _arranged(plan, positions, source, query, sql))


def _positions(source: Source, named: Sequence[exp.Expr], sql: str) -> list[int]:
    """For each column of the source, which of the table's it becomes."""
    if not named:
        return list(range(len(source.schema)))
    by_name = {fold(name): position for position, name in enumerate(source.schema.names)}

    def position(node: exp.Expr) -> int:
        with placed(sql, node):
            if fold(node.name) not in by_name:
                hint = suggestion(node.name, source.schema.names)
                raise ValueError(f'table "{source.name}" has no column "{node.name}".{hint}')
            return by_name[fold(node.name)]

    positions = list(each(position, named, sql))
    for index, node in enumerate(named):
        with placed(sql, node):
            if positions[index] in positions[:index]:
                raise ValueError(f'column "{node.name}" is named twice')
    return positions


def _check_count(node: exp.Expr, given: int, positions: Sequence[int], source: Source, sql: str) -> None:
    with placed(sql, node):
        if given != len(positions):
            wanted = f"{len(positions)} column{'s' * (len(positions) != 1)}"
            raise ValueError(f'table "{source.name}" takes {wanted} here, not {given}')


def _arranged(plan: Plan, positions: Sequence[int], source: Source, node: exp.Expr, sql: str) -> Plan:
    fields = [(field.name, field.type) for field in source.schema]
    given = {position: index for index, position in enumerate(positions)}

    def column(position: int) -> Expression:
        name, kind = fields[position]
        if position not in given:
            return literal(None, kind)
        field = plan.fields[given[position]]
        column = ColumnRef(given[position], field.name, field.type)
        if field.type == kind:
            return column
        with placed(sql, node):
            try:
                return explicit_cast(column, kind)
            except ValueError as error:
                raise ValueError(f'column "{name}" of table "{source.name}": {error}') from None

    columns = tuple(each(column, range(len(fields)), sql))
    names = tuple(name for name, _ in fields)
    straight = tuple(ColumnRef(i, name, kind) for i, (name, kind) in enumerate(fields))
    return plan if columns == straight else Project(plan, columns, names)
