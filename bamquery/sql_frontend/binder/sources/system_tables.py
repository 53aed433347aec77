"""Tables of the catalogue in FROM: information_schema.tables, duckdb_tables() and the like."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from bamquery.errors import CatalogError
from bamquery.function_catalog.table_functions import SYSTEM_FUNCTIONS
from bamquery.plan.nodes import Source
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.file_options import arguments
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.system_names import INFORMATION_SCHEMA, INFORMATION_TABLES, MAIN
from bamquery.text.identifiers import fold_case, suggestion

_ABOUT_ONE: Final = "table_info"


def bind_information_table(node: exp.Expr, sql: str, catalog: Catalog) -> Source:
    """A table of information_schema.

    Raises:
        SqlError: there is none of that name; with the nearest one.
    """
    name = fold_case(node.name)
    with errors_at(sql, node):
        if name not in INFORMATION_TABLES:
            hint = suggestion(name, INFORMATION_TABLES)
            raise ValueError(
                f'there is no table "{node.name}" in {INFORMATION_SCHEMA}.{hint} '
                f"There are {', '.join(INFORMATION_TABLES)}"
            )
    return catalog.system_table(f"{INFORMATION_SCHEMA}.{name}")


def bind_system_function(node: exp.Expr, sql: str, catalog: Catalog) -> Source:
    """duckdb_tables() and the like, and pragma_table_info('t').

    Raises:
        SqlError: arguments that it does not take; no such table or view.
    """
    name = node.name.lower()
    subject = SYSTEM_FUNCTIONS[name]
    with errors_at(sql, node):
        plain, named = arguments(node)
        if subject != _ABOUT_ONE:
            if plain or named:
                raise ValueError(f"{name}() takes no arguments")
            return catalog.system_table(subject)
        argument = plain[0].unnest() if len(plain) == 1 and not named else None
        if not isinstance(argument, exp.Literal) or not argument.args["is_string"]:
            raise ValueError(f"{name}() takes the name of a table or view as a string in the statement")
        return bind_relation_table(subject, argument.name, catalog)


def bind_relation_table(subject: str, written: str, catalog: Catalog) -> Source:
    """A table of the catalogue about one table or view, whose name is written with or without its schema.

    Raises:
        ValueError: there is none, in words.
    """
    schema, _, plain = written.rpartition(".")
    known = {fold_case(name) for name in catalog.table_names()}
    inner = fold_case(written) not in known and fold_case(schema) in (
        MAIN,
        f"{fold_case(catalog.database)}.{MAIN}",
    )
    try:
        return catalog.system_table(subject, plain if inner else written)
    except CatalogError as error:
        raise ValueError(str(error)) from error
