"""Functions whose answer the connection knows: version(), current_setting() and the like.

Their values are looked up before a statement is bound, and noted where they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types.names import type_name
from bamquery.errors import SettingError
from bamquery.function_catalog.session import SESSION_FUNCTIONS, WITHOUT_PARENTHESES
from bamquery.function_catalog.table_functions import FILE_FUNCTIONS
from bamquery.plan.expressions import Expression, Literal
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.functions.bindings import check_count
from bamquery.sql_frontend.functions.coercion import coerce, is_null
from bamquery.sql_frontend.functions.operators import BOOLEAN, STRING, literal
from bamquery.sql_frontend.parameters import constant, is_variable, mark
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.syntax.walking import walk
from bamquery.sql_frontend.system_names import INFORMATION_SCHEMA, MAIN, SESSION_VALUE
from bamquery.text.identifiers import fold_case

_USER: Final = "bamquery"
_ARGUMENTS: Final[dict[str, tuple[pa.DataType, ...]]] = {
    "current_setting": (STRING,),
    "getvariable": (STRING,),
    "current_schemas": (BOOLEAN,),
    "in_search_path": (STRING, STRING),
}
"""The types of arguments, where there are any."""


def settle_session(tree: exp.Expr, sql: str, catalog: Catalog) -> None:
    """Note the values of its functions of the connection.

    Raises:
        SqlError: arguments that are no constants, settings that there are not; all of them.
    """
    # A default is kept as text, and means what it says whoever inserts.
    nodes = [
        node
        for node in walk(tree)
        if isinstance(node, exp.Anonymous | exp.Column)
        and node.find_ancestor(exp.DefaultColumnConstraint) is None
    ]
    nodes.reverse()  # what stands within an argument comes first
    apply_to_each(lambda node: _settle(node, sql, catalog), nodes, sql)


def _settle(node: exp.Expr, sql: str, catalog: Catalog) -> None:
    name = node.name.lower()
    if isinstance(node, exp.Anonymous):
        if name in SESSION_FUNCTIONS and not isinstance(node.parent, exp.Table):
            with errors_at(sql, node):
                kinds = _ARGUMENTS.get(name, ())
                check_count(name, len(node.expressions), len(kinds), len(kinds))
                if any(argument.find(exp.Column, exp.Query) for argument in node.expressions):
                    raise ValueError(f"{name}() takes constants, no columns or queries")
            bound = ExpressionBinder(sql, Scope(), f"{name}()").bind_all(node.expressions)
            with errors_at(sql, node):
                if name == "getvariable":
                    _settle_variable(node, bound[0], catalog)
                    return
                arguments = [
                    _constant(name, catalog.fold_constants(coerce(value, kind)))
                    for value, kind in zip(bound, kinds, strict=True)
                ]
                node.meta[SESSION_VALUE] = _value(name, arguments, catalog)
    elif name in WITHOUT_PARENTHESES and not node.args.get("table"):
        node.meta[SESSION_VALUE] = _value(name, (), catalog)


def _settle_variable(node: exp.Anonymous, argument: Expression, catalog: Catalog) -> None:
    """Note the value of a variable; where only a constant can stand, put it there."""
    if not (is_null(argument) or argument.type == STRING):
        raise ValueError(f"getvariable() takes a name, not {type_name(argument.type)}")
    name = catalog.fold_constants(argument)
    if not isinstance(name, Literal):
        raise ValueError("getvariable() takes constants")
    value = catalog.variable(name.value.as_py()) if not name.is_null else None
    if value is None and is_variable(node):
        raise ValueError(f"there is no value for parameter {mark(node)}, and no variable of that name")
    found = literal(None, pa.null()) if value is None else Literal(value)
    if _takes_constants(node):
        node.replace(constant(found.value.as_py()))
    else:
        node.meta[SESSION_VALUE] = found


def _takes_constants(node: exp.Expr) -> bool:
    """Whether it is the path or an option of a function of files or COPY, or the value of a setting."""
    inner, outer = node, node.parent
    while isinstance(outer, (exp.Paren, exp.EQ, exp.PropertyEQ, exp.Array, exp.Struct)):
        inner, outer = outer, outer.parent
    if isinstance(outer, exp.Anonymous):
        return isinstance(outer.parent, exp.Table) and outer.name.lower() in FILE_FUNCTIONS
    if isinstance(outer, (syntax.CopyTo, syntax.CopyFrom)):
        return inner.arg_key == "path"
    return isinstance(outer, (syntax.Option, syntax.SetSetting))


def _constant(name: str, value: Any) -> Any:
    if not isinstance(value, Literal):
        raise ValueError(f"{name}() takes constants")
    if value.is_null:
        raise ValueError(f"the argument of {name}() cannot be NULL")
    return value.value.as_py()


def _value(name: str, arguments: Sequence[Any], catalog: Catalog) -> Literal:
    match name, *arguments:
        case "current_setting", setting:
            try:
                return Literal(catalog.setting(setting))
            except SettingError as error:
                raise ValueError(str(error)) from error
        case "in_search_path", database, schema:
            return literal(
                fold_case(database) == fold_case(catalog.database) and fold_case(schema) == MAIN, BOOLEAN
            )
        case "current_schemas", implicit:
            return literal(f"[{MAIN}, {INFORMATION_SCHEMA}]" if implicit else f"[{MAIN}]", STRING)
        case "current_database" | "current_catalog", *_:
            return literal(catalog.database, STRING)
        case "current_schema", *_:
            return literal(MAIN, STRING)
        case "version", *_:
            return literal(catalog.version, STRING)
    return literal(_USER, STRING)
