"""SQL text to bound statements."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from sqlglot import exp

from bamquery.errors import CatalogError, within_depth
from bamquery.plan.assumptions import Assumptions
from bamquery.plan.bound_statements import (
    CreateTable,
    CreateTableAs,
    CreateView,
    Describe,
    DropTable,
    DropView,
    Explain,
    Optimize,
    Query,
    Reset,
    Set,
    SetVariable,
    Statement,
    Vacuum,
)
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Field, Plan, Project
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.queries.query_binder import bind_query
from bamquery.sql_frontend.binder.schema_names import settle_schemas
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.binder.sources.from_clause import bind_table, catalog_of
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.functions.coercion import coerce
from bamquery.sql_frontend.parameters import Parameters, fill
from bamquery.sql_frontend.parser.parser import parse
from bamquery.sql_frontend.support import supported_syntax as support
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.syntax.dismantling import dismantle
from bamquery.sql_frontend.system_names import may_ask_session
from bamquery.sql_frontend.text_constants import TextConstants, mark_constants
from bamquery.statement_context.deep_recursion import with_deep_recursion
from bamquery.text.identifiers import fold_case, unique_names

if TYPE_CHECKING:
    from bamquery.sql_frontend.parameter_constants import Constants


def bind(
    sql: str,
    catalog: Catalog,
    parameters: Parameters | None = None,
    assumptions: tuple[Constants, Assumptions] | None = None,
) -> Iterator[Statement]:
    """The statements of a text, each bound when it is asked for.

    All are parsed, and searched for what is not supported, before the first is given out: nothing has run
    when that fails. Names and types are looked up later, since a statement may make what the next one uses.

    `parameters` take the places of `?`, `$1` and `$name` in all statements. `assumptions` are where to note
    what is assumed of the text's constants, or of the parameters' values.

    Raises:
        SqlError: syntax, unknown names or types that do not fit; every reason with line and column.
        UnsupportedError: constructs that BamQuery does not run; all of them.
    """
    return _bind_all(_parse_and_check(sql, catalog, parameters, assumptions), sql, catalog)


def bind_view(sql: str, catalog: Catalog) -> Plan:
    """The plan of a view's query; a column that is NULL alone has no type yet, as in a query within others.

    Raises:
        SqlError: as `bind`.
    """
    trees = _parse_and_check(sql, catalog, None)
    try:
        (tree,) = trees
        with within_depth(sql):
            if may_ask_session(sql):
                _settle_session(tree, sql, catalog)
            return bind_query(tree, sql, catalog)
    finally:
        dismantle(trees)


def _parse_and_check(
    sql: str,
    catalog: Catalog,
    parameters: Parameters | None,
    assumptions: tuple[Constants, Assumptions] | None = None,
) -> list[exp.Expr]:
    trees = parse(sql)
    try:
        with within_depth(sql):
            of_values = None
            if assumptions is not None:
                constants, noted = assumptions
                if isinstance(constants, TextConstants):
                    mark_constants(trees, constants, noted)
                else:
                    of_values = noted
            fill(trees, sql, parameters, catalog.has_variable, of_values)
            settle_schemas(trees, sql, catalog.database)
            with_deep_recursion(lambda: apply_to_each(lambda tree: support.check(tree, sql), trees, sql))
    except BaseException:
        dismantle(trees)
        raise
    return trees


def _bind_all(trees: list[exp.Expr], sql: str, catalog: Catalog) -> Iterator[Statement]:
    trees.reverse()
    try:
        while trees:
            yield _bind_next(trees, sql, catalog)
    finally:
        dismantle(trees)


def _bind_next(trees: list[exp.Expr], sql: str, catalog: Catalog) -> Statement:
    """What the last of the trees says, which is taken away: who runs it need not keep the text's tree."""
    tree = trees.pop()
    try:
        with within_depth(sql):
            if may_ask_session(sql):
                _settle_session(tree, sql, catalog)
            return with_deep_recursion(partial(_bind_statement, tree, sql, catalog))
    finally:
        dismantle([tree])


def _settle_session(tree: exp.Expr, sql: str, catalog: Catalog) -> None:
    from bamquery.sql_frontend.binder.expressions.session_functions import settle_session  # noqa: PLC0415 (few statements ask)

    settle_session(tree, sql, catalog)


def _bind_statement(tree: exp.Expr, sql: str, catalog: Catalog) -> Statement:
    binder = _BINDERS.get(type(tree))
    return binder(tree, sql, catalog) if binder is not None else _bind_query(tree, sql, catalog)


def _bind_query(tree: exp.Expr, sql: str, catalog: Catalog) -> Query:
    return Query(with_column_types(bind_query(tree, sql, catalog)))


def with_column_types(plan: Plan) -> Plan:
    """The plan with a type for every column: NULL alone is INTEGER, as where DuckDB stores it."""
    if not any(pa.types.is_null(field.type) for field in plan.fields):
        return plan
    columns: list[Expression] = [ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields)]
    settled = [coerce(c, pa.int32()) if pa.types.is_null(c.type) else c for c in columns]
    return Project(plan, tuple(settled), tuple(field.name for field in plan.fields))


def _bind_create(tree: exp.Create, sql: str, catalog: Catalog) -> CreateTable | CreateTableAs | CreateView:
    if tree.args.get("replace") and tree.args.get("exists"):
        with errors_at(sql, tree.this):
            raise ValueError("CREATE OR REPLACE cannot be together with IF NOT EXISTS: leave one of them out")
    from bamquery.sql_frontend.binder.statements.table_definitions import (  # noqa: PLC0415 (queries need none of it)
        bind_create_table,
        bind_create_view,
    )
    from bamquery.sql_frontend.binder.statements.table_options import bind_encoding  # noqa: PLC0415 (the same)

    if tree.args["kind"] == "VIEW":
        return bind_create_view(tree, sql, catalog)
    if tree.args.get("expression") is None:
        return bind_create_table(tree, sql, catalog)
    plan = with_column_types(bind_query(tree.expression, sql, catalog))
    names = [field.name for field in plan.fields]
    target = tree.this
    if isinstance(target, exp.Schema):
        with errors_at(sql, target):
            if len(target.expressions) > len(names):
                raise ValueError(f"the query has {len(names)} columns, not {len(target.expressions)}")
        for node in target.expressions:
            with errors_at(sql, node):
                if not isinstance(node, exp.Identifier):
                    raise ValueError("CREATE TABLE AS takes names of columns, and the query's types")
        names[: len(target.expressions)] = [node.name for node in target.expressions]
        target = target.this
    unique = unique_names(names)
    if unique != [field.name for field in plan.fields]:
        columns = tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields))
        plan = Project(plan, columns, tuple(unique))
    return CreateTableAs(
        target.name,
        plan,
        bool(tree.args.get("replace")),
        bool(tree.args.get("exists")),
        bind_encoding(tree.args.get("options") or (), sql),
    )


def _bind_drop(tree: exp.Drop, sql: str, catalog: Catalog) -> DropTable | DropView:
    kind = DropTable if tree.args["kind"] == "TABLE" else DropView
    return kind(tree.args["tables"][0].name, bool(tree.args.get("exists")))


def _bind_show_named(tree: syntax.ShowNamed, sql: str, catalog: Catalog) -> Describe | Query:
    from bamquery.sql_frontend.binder.statements.show import shown_setting  # noqa: PLC0415 (few statements are SHOW)

    setting = shown_setting(tree.this, catalog)
    return _bind_describe(tree, sql, catalog) if setting is None else Query(setting)


def _bind_describe(tree: exp.Describe | syntax.ShowNamed, sql: str, catalog: Catalog) -> Describe:
    if isinstance(tree.this, exp.Table) and isinstance(tree.this.this, exp.Identifier):
        plan = bind_query(tree.this, sql, catalog)
        return Describe(with_column_types(plan).fields, tuple(_column_notes(tree.this, catalog)))
    if not isinstance(tree.this, (exp.Query, exp.Values)):
        with errors_at(sql, tree.this):
            raise ValueError("DESCRIBE is for tables and queries")
    return Describe(_bind_query(tree.this, sql, catalog).plan.fields)


def _column_notes(table: exp.Table, catalog: Catalog) -> Sequence[tuple[bool, str | None]]:
    try:
        rules = catalog_of(table, catalog).rules(table.name)
    except CatalogError:  # no table of the database's own
        rules = ()
    return [(rule.not_null, rule.default) for rule in rules]


def _bind_reset(tree: syntax.Reset, sql: str, catalog: Catalog) -> Reset:
    return Reset(tree.this.name.lower())


def _bind_explain(tree: syntax.Explain, sql: str, catalog: Catalog) -> Explain:
    below = tree.this
    makes = isinstance(below, exp.Create)
    has_plan = not makes or (below.args["kind"] == "TABLE" and below.args.get("expression") is not None)
    if not isinstance(below, (exp.Query, exp.Values, exp.Create, exp.Insert)) or not has_plan:
        with errors_at(sql, below):
            raise ValueError("EXPLAIN is for SELECT, CREATE TABLE AS and INSERT")
    statement: Any = _bind_statement(below, sql, catalog)
    return Explain(statement, bool(tree.args.get("analyze")))


def _bind_optimize(tree: syntax.Optimize, sql: str, catalog: Catalog) -> Optimize:
    source = bind_table(tree.this.name, tree.this, sql, catalog)
    scope = Scope.from_fields(source.name, (Field(field.name, field.type) for field in source.schema))

    def column(node: exp.Identifier) -> str:
        found = scope.find(node.name)
        with errors_at(sql, node):
            if found is None:
                raise ValueError(scope.missing_message(node.name))
        return found.name

    return Optimize(source.name, tuple(apply_to_each(column, tree.args.get("columns") or (), sql)))


def _bind_vacuum(tree: syntax.Vacuum, sql: str, catalog: Catalog) -> Vacuum:
    return Vacuum()


def _bind_set(tree: syntax.SetSetting, sql: str, catalog: Catalog) -> Set:
    with errors_at(sql, tree.expression):
        return Set(tree.this.name.lower(), _setting_value(tree.expression))


def _bind_set_variable(tree: syntax.SetVariable, sql: str, catalog: Catalog) -> SetVariable:
    name = fold_case(tree.this.name)
    query = tree.args.get("expression")
    if query is None:
        return SetVariable(name)
    plan = bind_query(query, sql, catalog)
    return SetVariable(name, with_column_types(plan), plan.fields[0].type)


def _setting_value(node: exp.Expr) -> bool | int | float | str | tuple[str, ...] | None:
    match node:
        case exp.Literal():
            text = str(node.this)
            if node.args["is_string"]:
                return text
            return int(text) if text.isdecimal() else float(text)
        case exp.Paren(this=inner) | syntax.Plus(this=inner):  # a parameter's value, or + and a number
            return _setting_value(inner)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.Var() | exp.Column():
            return str(node.name)
        case exp.Array(expressions=items) if all(item.is_string for item in items):
            return tuple(str(item.this) for item in items)
        case exp.Neg(this=exp.Literal() as below):
            number = _setting_value(below)
            if isinstance(number, int | float):
                return -number
    raise ValueError(
        "a setting's value must be a number, a string, a word, TRUE, FALSE, NULL or a list of strings"
    )


_Binder: TypeAlias = Callable[[Any, str, Catalog], Statement]


def _lazy_binder(module: str, function: str) -> _Binder:
    """A binder of another module, which is imported with the first statement that needs it."""

    def bind_statement(tree: Any, sql: str, catalog: Catalog) -> Statement:
        binder: _Binder = getattr(importlib.import_module(f"bamquery.sql_frontend.binder.{module}"), function)
        return binder(tree, sql, catalog)

    return bind_statement


_BINDERS: Final[Mapping[type[exp.Expr], _Binder]] = MappingProxyType(
    {
        exp.Create: _bind_create,
        exp.Insert: _lazy_binder("statements.insert", "bind_insert"),
        exp.Drop: _bind_drop,
        exp.Describe: _bind_describe,
        syntax.ShowTables: _lazy_binder("statements.show", "bind_show_tables"),
        syntax.ShowNamed: _bind_show_named,
        syntax.ShowSubject: _lazy_binder("statements.show", "bind_show"),
        syntax.SchemaStatement: _lazy_binder("statements.show", "bind_schema_statement"),
        syntax.AlterTable: _lazy_binder("statements.table_definitions", "bind_alter"),
        syntax.Reset: _bind_reset,
        syntax.Summarize: _lazy_binder("statements.summarize", "bind_summarize"),
        syntax.CopyTo: _lazy_binder("statements.copy_statements", "bind_copy_to"),
        syntax.CopyFrom: _lazy_binder("statements.copy_statements", "bind_copy_from"),
        syntax.Explain: _bind_explain,
        syntax.Optimize: _bind_optimize,
        syntax.Vacuum: _bind_vacuum,
        syntax.SetSetting: _bind_set,
        syntax.SetVariable: _bind_set_variable,
    }
)
