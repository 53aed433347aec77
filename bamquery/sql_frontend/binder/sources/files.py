"""Files in FROM: paths, and table functions with options, to a plan over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.errors import BamQueryError, CancelledError, Reason, SqlError
from bamquery.function_catalog.table_functions import FILE_FUNCTIONS
from bamquery.plan.expressions import Call, ColumnRef, Expression
from bamquery.plan.nodes import Filter, Plan, Project, Scan
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.file_options import FileRequest, arguments, file_request
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.functions.operators import explicit_cast, literal
from bamquery.sql_frontend.syntax.positions import reason
from bamquery.storage.ingest.sources.options import VIRTUAL_COLUMNS, FileOptions
from bamquery.text.identifiers import fold_case, suggestion

_BOOLEAN: Final = pa.bool_()


def bind_file_function(
    node: exp.Expr, sql: str, catalog: Catalog, others: Sequence[str] = ()
) -> tuple[Plan, int]:
    """read_parquet() and its like: a path or a list of them, and options; `others` are not of files.

    Also says how many of the last columns are for who names them only.

    Raises:
        SqlError: no such function or option, no such file, or one that cannot be read.
    """
    name = node.name.lower()
    with errors_at(sql, node):
        if not isinstance(node, exp.Anonymous) or name not in FILE_FUNCTIONS:
            known = [*FILE_FUNCTIONS, *others]
            raise ValueError(f"there is no table function {name}().{suggestion(name, known)}")
        plain, named = arguments(node)
        if len(plain) != 1:
            raise ValueError(f"{name}() takes one path or list of paths, and options by name")
        given = plain[0].unnest()
        paths = [path.unnest() for path in (given.expressions if isinstance(given, exp.Array) else [given])]
        if not paths or not all(isinstance(path, exp.Literal) and path.args["is_string"] for path in paths):
            raise ValueError(f"{name}() needs paths as strings in the statement")
    file_format = FILE_FUNCTIONS[name]
    request = file_request(file_format, named, sql, f"{name}()")
    return bind_files([path.this for path in paths], file_format, node, sql, catalog, request)


def bind_files(  # noqa: PLR0917 (what they are, where it is said, how they are read)
    patterns: Sequence[str],
    file_format: str | None,
    node: exp.Expr,
    sql: str,
    catalog: Catalog,
    request: FileRequest | None = None,
) -> tuple[Plan, int]:
    """Files by their paths, as one table, and how many of its last columns are for who names them only.

    Raises:
        SqlError: they cannot be opened as one; what the reader says, at the node.
    """
    request = request or FileRequest()
    try:
        source = catalog.files(patterns, file_format, _add_virtual_columns(request.options, sql))
    except (SqlError, CancelledError):
        raise
    except BamQueryError as error:
        place = reason("", sql, node)
        raise SqlError(Reason(str(error), place.line, place.column), sql) from error
    plan = Scan(source, tuple(range(len(source.schema))))
    made, hidden = catalog.virtual_columns(source)
    with errors_at(sql, node):
        return _apply_types(plan, made + hidden, request), hidden


def _add_virtual_columns(options: FileOptions, sql: str) -> FileOptions:
    """With the virtual columns that the statement may name, as those that nobody names cost a little."""
    text = sql.lower()
    named = tuple(name for name in VIRTUAL_COLUMNS if name in text)
    return replace(options, paths=replace(options.paths, virtual=named)) if named else options


def _apply_types(plan: Scan, made: int, request: FileRequest) -> Plan:
    """The columns that are asked for, in the types asked for; the last `made` are not in the files."""
    if not request.types and not request.key_types:
        return plan
    names = [field.name for field in plan.fields]
    places = {fold_case(name): place for place, name in enumerate(names)}
    kinds: dict[int, pa.DataType] = {}
    for column, kind in (*request.types, *request.key_types):
        place = column if isinstance(column, int) else places.get(fold_case(column), -1)
        if 0 <= place < len(names):
            kinds[place] = kind
        elif request.columns is None or isinstance(column, int):
            raise ValueError(f'the files have no column "{column}".{suggestion(str(column), names)}')

    below: Plan = plan
    if request.options.ignore_errors:
        below = _filter_castable(plan, kinds)

    def column_at(place: int) -> Expression:
        field = plan.fields[place]
        reference = ColumnRef(place, field.name, field.type)
        kind = kinds.get(place, field.type)
        return reference if kind == field.type else explicit_cast(reference, kind)

    if request.columns is None or request.options.names:
        own = len(names) - made
        if request.columns is not None and len(request.columns) != own:
            raise ValueError(f"the files have {own} columns, not {len(request.columns)}")
        chosen = [column_at(place) for place in range(len(names))]
        return Project(below, tuple(chosen), tuple(names))
    wanted = dict(request.types)
    chosen = [
        column_at(places[fold_case(name)]) if fold_case(name) in places else literal(None, wanted[name])
        for name in request.columns
    ]
    wanted_names = [*request.columns, *names[len(names) - made :]]
    chosen += [column_at(place) for place in range(len(names) - made, len(names))]
    return Project(below, tuple(chosen), tuple(wanted_names))


def _filter_castable(plan: Scan, kinds: Mapping[int, pa.DataType]) -> Plan:
    """The rows whose values all are of the types asked for, as `ignore_errors` has it."""
    filtered: Plan = plan
    for place, kind in kinds.items():
        field = plan.fields[place]
        column = ColumnRef(place, field.name, field.type)
        if kind != field.type:
            cast = explicit_cast(column, kind, try_=True)
            fits = Call(
                "or", (Call("is_null", (column,), _BOOLEAN), Call("is_not_null", (cast,), _BOOLEAN)), _BOOLEAN
            )
            filtered = Filter(filtered, fits)
    return filtered
