"""What stands before the names of tables: the schema, and the database before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.syntax.walking import walk
from bamquery.sql_frontend.system_names import INFORMATION_SCHEMA, MAIN
from bamquery.text.identifiers import fold_case, suggestion

_SCHEMAS: Final = (MAIN, INFORMATION_SCHEMA)
_CHANGING: Final = (exp.Create, exp.Insert, exp.Drop, syntax.AlterTable, syntax.CopyFrom, syntax.Optimize)


def settle_schemas(trees: Sequence[exp.Expr], sql: str, database: str) -> None:
    """Leave of what stands before a table's name its schema, and of a column's table nothing.

    Both `database.main.t` and `database.t` are `main.t`.

    Raises:
        SqlError: there is no such schema or database, or what is in it cannot be changed; all of them.
    """
    if "." in sql:
        found = [node for tree in trees for node in walk(tree) if isinstance(node, exp.Table | exp.Column)]
        apply_to_each(
            lambda node: _settle(node, sql, database), [node for node in found if node.args.get("db")], sql
        )


def settled_schema(schema: str, catalog: str, database: str) -> str:
    """The schema that is named, with or without the name of the database before it.

    Raises:
        ValueError: there is no such schema or database, in words.
    """
    if not catalog and fold_case(schema) == fold_case(database) and fold_case(schema) not in _SCHEMAS:
        return MAIN
    if catalog and fold_case(catalog) != fold_case(database):
        raise ValueError(
            f'there is no database "{catalog}" here: this one is called "{database}"'
            f"{suggestion(catalog, [database])}"
        )
    if fold_case(schema) not in _SCHEMAS:
        raise ValueError(
            f'there is no schema "{schema}": tables and views are in {MAIN}, whose name may be left out'
        )
    return fold_case(schema)


def _settle(node: exp.Expr, sql: str, database: str) -> None:
    with errors_at(sql, node):
        schema = settled_schema(node.text("db"), node.text("catalog"), database)
        if isinstance(node, exp.Table) and schema == INFORMATION_SCHEMA and _is_changed(node):
            raise ValueError(f"what is in {INFORMATION_SCHEMA} cannot be made, changed or dropped")
    node.set("catalog", None)
    if isinstance(node, exp.Column):
        # Where a name is of a table in a schema, there is no other one of that name beside it.
        node.set("db", None)
    else:
        node.set("db", exp.to_identifier(schema))


def _is_changed(node: exp.Expr) -> bool:
    around = node.parent
    if isinstance(around, exp.Schema):
        around = around.parent
    return isinstance(around, _CHANGING)
