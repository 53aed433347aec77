"""`executemany`: one INSERT, and one commit, for all rows of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types.names import type_name
from bamquery.dbapi.errors import NotSupportedError, ProgrammingError
from bamquery.dbapi.value_columns import value_columns
from bamquery.plan.bound_statements import Insert
from bamquery.plan.nodes import Field
from bamquery.session.session import Session
from bamquery.sql_frontend.parameters import Parameters
from bamquery.sql_frontend.parser.parser import parse
from bamquery.text.identifiers import fold_case

_ROWS: Final = "rows_of_values"
_ROWS_OF: Final = frozenset({tuple, list, dict})
"""What rows mostly are; looking for these is quicker than asking what kind of a collection each is."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One statement in place of many: its text, its parameters, and a table that it reads by name."""

    text: str
    parameters: Parameters | None = None
    name: str = ""
    table: pa.Table | None = None


def batch(session: Session, operation: str, rows: Sequence[Parameters]) -> Batch:
    """The statement that inserts all rows.

    Where VALUES has nothing but parameters, their values become Arrow columns that the statement casts to the
    table's types; otherwise it gets a row of VALUES for each.

    Raises:
        NotSupportedError: it is no INSERT INTO ... VALUES with one row.
        ProgrammingError: a row has too many or too few values.
        BamQueryError: the statement cannot be understood, or the first row's values do not fit.
    """
    insert, cells = _template(operation)
    names = _names(insert, cells, rows)
    (statement,) = session.statements.bind(
        operation, session.catalog(with_variables=False), rows[0]
    )  # with all its errors
    assert isinstance(statement, Insert)
    if all(isinstance(cell, exp.Placeholder) for cell in cells):
        columns = [value_columns(column) for column in zip(*rows_in_order(rows, names), strict=True)]
        if None not in columns:
            known = [column for column in columns if column is not None]
            return _from_columns(insert, statement, known, len(rows))
    return _from_values(insert, cells, names, rows)


def _template(operation: str) -> tuple[exp.Insert, list[exp.Expr]]:
    """The INSERT, and the cells of its one row."""
    trees = parse(operation)
    insert = trees[0] if len(trees) == 1 else None
    values = insert.expression if isinstance(insert, exp.Insert) else None
    if (
        not isinstance(insert, exp.Insert)
        or not isinstance(values, exp.Values)
        or len(values.expressions) != 1
        or insert.args.get("by_name")
        or values.args.get("with_") is not None
    ):
        raise NotSupportedError(
            "executemany() is for one INSERT INTO ... VALUES with one row of parameters, which it commits "
            "once: call execute() for each of other statements"
        )
    row = values.expressions[0]
    return insert, list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _names(insert: exp.Insert, cells: Sequence[exp.Expr], rows: Sequence[Parameters]) -> list[Any]:
    """Key of each parameter in the order of the text: its name in a mapping, or its place in a sequence."""
    found = [node for cell in cells for node in cell.find_all(exp.Placeholder)]
    found.sort(key=lambda node: int(node.meta["start"]))
    written = [str(node.args.get("this") or "") for node in found]
    named = isinstance(rows[0], Mapping)
    names: list[Any] = written if named else [int(name or place) - 1 for place, name in enumerate(written, 1)]
    wanted = {fold_case(name) for name in names} if named else set(names)
    for number, row in enumerate(rows, 1):
        if type(row) not in _ROWS_OF and not _is_row(row):
            raise ProgrammingError(
                f"row {number} of the values is a {type(row).__name__}, not a sequence or a mapping"
            )
        if len(row) != len(wanted) or isinstance(row, Mapping) != named:
            kind = "a mapping" if isinstance(row, Mapping) else "a sequence"
            raise ProgrammingError(
                f"row {number} of the values is {kind} of {len(row)}, "
                f"where the statement takes {'a mapping' if named else 'a sequence'} of {len(wanted)}"
            )
    return names


def _is_row(row: object) -> bool:
    return isinstance(row, (Mapping, Sequence)) and not isinstance(row, (str, bytes))


def rows_in_order(rows: Sequence[Any], names: Sequence[Any]) -> list[Sequence[Any]]:
    """The values of each row in the order of the statement's parameters."""
    if names == list(range(len(names))):
        return list(rows)
    if isinstance(names[0], int):
        return [[row[name] for name in names] for row in rows]
    ordered: list[Sequence[Any]] = []
    for number, row in enumerate(rows, 1):
        folded = {fold_case(str(name)): value for name, value in row.items()}
        try:
            ordered.append([folded[fold_case(name)] for name in names])
        except KeyError as error:
            raise ProgrammingError(
                f"row {number} of the values has none for parameter ${error.args[0]}"
            ) from None
    return ordered


def _from_columns(
    insert: exp.Insert, statement: Insert, columns: Sequence[list[pa.Array[Any]]], rows: int
) -> Batch:
    types = _target_types(insert, statement.plan.fields)
    table: dict[str, pa.Array[Any]] = {}
    selected = []
    for kinds, kind in zip(columns, types, strict=True):
        parts = []
        for column in kinds:
            parts.append(f"CAST(v{len(table)} AS {type_name(kind)})")
            table[f"v{len(table)}"] = column
        selected.append(f"coalesce({', '.join(parts)})" if len(parts) > 1 else "".join(parts) or "NULL")
    table["row"] = pa.nulls(rows, pa.bool_())  # there may be nothing but nulls
    name = _ROWS
    while fold_case(name) == fold_case(statement.name):
        name += "_"
    text = f"INSERT INTO {_target(insert)} SELECT {', '.join(selected)} FROM {name}"  # noqa: S608 (quoted)
    return Batch(text, None, name, pa.table(table))


def _target(insert: exp.Insert) -> str:
    """The table, and the columns where they are named."""
    schema = insert.this
    named = schema.expressions if isinstance(schema, exp.Schema) else []
    table = schema.this if isinstance(schema, exp.Schema) else schema
    columns = f" ({', '.join(_quote_name(node.name) for node in named)})" if named else ""
    return _quote_name(table.name) + columns


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _target_types(insert: exp.Insert, fields: Sequence[Field]) -> list[pa.DataType]:
    """Types of the columns that the values go to, in the order of the values."""
    if not isinstance(insert.this, exp.Schema):
        return [field.type for field in fields]
    by_name = {fold_case(field.name): field.type for field in fields}
    return [by_name[fold_case(node.name)] for node in insert.this.expressions]


def _from_values(
    insert: exp.Insert, cells: Sequence[exp.Expr], names: Sequence[Any], rows: Sequence[Any]
) -> Batch:
    """A row of VALUES for each row of values, numbered through."""
    for cell in cells:
        for node in list(cell.find_all(exp.Placeholder)):
            node.set("this", None)
    row = f"({', '.join(cell.sql('duckdb') for cell in cells)})"
    text = f"INSERT INTO {_target(insert)} VALUES {', '.join([row] * len(rows))}"  # noqa: S608 (quoted)
    return Batch(text, [value for values in rows_in_order(rows, names) for value in values])
