"""COPY: rows into a file, or a file's rows into a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from bamquery.errors import CatalogError
from bamquery.plan.bound_statements import CopyTo, Insert
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Plan, Project, Scan
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.file_options import (
    CSV_MARKS,
    FileRequest,
    copy_options,
    copy_path,
    file_request,
    json_columns,
    note_option,
)
from bamquery.sql_frontend.binder.option_values import (
    boolean,
    character,
    count,
    integer,
    string_value,
    string_values,
    word_reader,
)
from bamquery.sql_frontend.binder.queries.query_binder import bind_query
from bamquery.sql_frontend.binder.sources.files import bind_files
from bamquery.sql_frontend.binder.sources.from_clause import bind_table, catalog_of
from bamquery.sql_frontend.binder.statements.column_defaults import Defaults
from bamquery.sql_frontend.binder.statements.copy_partitions import PARTITION_OPTIONS, bind_partitioning
from bamquery.sql_frontend.binder.statements.insert import arrange_columns, check_count, target_positions
from bamquery.sql_frontend.fault_collection import FaultCollector, apply_to_each, errors_at
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.text.identifiers import fold_case, suggestion

FORMATS: Final = ("csv", "parquet", "json", "arrow")
_SUFFIXES: Final = {
    "parquet": "parquet",
    "pq": "parquet",
    "json": "json",
    "ndjson": "json",
    "jsonl": "json",
    "arrow": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
    "tsv": "tsv",
}
_Read = Callable[[exp.Expr | None], Any]


def _columns(value: exp.Expr | None) -> tuple[str, ...]:
    return ("*",) if isinstance(value, exp.Star) else string_values(value, "columns in parentheses, or *")


_WRITE_OPTIONS: Final[Mapping[str, Mapping[str, tuple[str, _Read]]]] = MappingProxyType(
    {
        "csv": {
            "header": ("header", boolean),
            **dict.fromkeys(("delim", "sep", "delimiter"), ("delimiter", character)),
            "quote": ("quote", character),
            "escape": ("escape", character),
            **dict.fromkeys(("null", "nullstr"), ("null", string_value)),
            "force_quote": ("force_quote", _columns),
            "compression": ("compression", word_reader("auto", "none", "gzip", "zstd")),
        },
        "json": {
            "array": ("array", boolean),
            "compression": ("compression", word_reader("auto", "none", "gzip", "zstd")),
        },
        "parquet": {
            "compression": (
                "compression",
                word_reader("zstd", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "uncompressed"),
            ),
            "compression_level": ("compression_level", integer),
            "row_group_size": ("row_group_size", count),
        },
        "arrow": {"compression": ("compression", word_reader("none", "zstd", "lz4"))},
    }
)
"""By format: what the option is called in `CopyTo`, and how its value is read."""


def bind_copy_to(tree: syntax.CopyTo, sql: str, catalog: Catalog) -> CopyTo:
    """COPY table or query TO a file.

    Raises:
        SqlError: no such table, column, format or option, or a value that an option cannot have.
    """
    source = tree.this
    if isinstance(source, exp.Table):
        stored = bind_table(source.name, source, sql, catalog)
        plan: Plan = Scan(stored, tuple(range(len(stored.schema))))
        plan = _select_columns(plan, tree.args.get("columns") or (), source.name, sql)
    else:
        with errors_at(sql, source):
            if not isinstance(source, (exp.Query, exp.Values)):
                raise ValueError("COPY TO takes a table or a query")
        plan = bind_query(source, sql, catalog)
    path = copy_path(tree.args["path"], sql)
    named = list(copy_options(tree))
    file_format = _format(named, path, sql)
    options: dict[str, Any] = {"delimiter": "\t"} if file_format == "tsv" else {}
    file_format = "csv" if file_format == "tsv" else file_format
    known = {**_WRITE_OPTIONS[file_format], **PARTITION_OPTIONS}
    extension = "tsv" if "delimiter" in options else file_format
    faults = FaultCollector(sql)
    seen: dict[object, str] = {}
    for name, node, value in named:
        if name.lower() == "format":
            continue
        with faults.collect(), errors_at(sql, node):
            if name.lower() not in known:
                raise ValueError(
                    f"COPY TO {file_format} has no option {name.lower()}.{suggestion(name, known)} "
                    f"Options: {', '.join(known)}"
                )
            option, read = known[name.lower()]
            note_option(seen, option, name.lower())
            try:
                options[option] = read(value)
            except ValueError as error:
                raise ValueError(f"{name.lower()}: {error}") from None
    faults.check()
    with errors_at(sql, tree):
        _check_quoted(options, [field.name for field in plan.fields])
        if file_format == "csv":
            _check_marks({**CSV_MARKS, **options})
        if file_format == "parquet":
            _check_level(options.get("compression", "zstd"), options.get("compression_level"))
        if file_format in ("csv", "json"):
            extension += {"gzip": ".gz", "zstd": ".zst"}.get(options.get("compression", ""), "")
        plan, partitioning = bind_partitioning(plan, options, extension)
    return CopyTo(plan, path, file_format, tuple(sorted(options.items())), partitioning)


def _check_quoted(options: Mapping[str, Any], names: list[str]) -> None:
    known = {fold_case(name) for name in names}
    for name in options.get("force_quote", ()):
        if name != "*" and fold_case(name) not in known:
            raise ValueError(f'force_quote: there is no column "{name}".{suggestion(name, names)}')


def _check_marks(marks: Mapping[str, str]) -> None:
    """Refuse what makes a CSV file that nobody can read back."""
    delimiter, null = marks["delimiter"], marks["null"]
    for name in ("quote", "escape"):
        if marks[name] == delimiter:
            raise ValueError(f"delimiter and {name} are both {delimiter!r}: no reader could tell them apart")
    named = [(name, marks[name]) for name in ("delimiter", "quote", "escape")]
    for what, mark in (*named, ("line end", "\n"), ("line end", "\r")):
        if mark in null:
            raise ValueError(f"nullstr {null!r} holds the {what} {mark!r}: no reader could tell them apart")


def _check_level(codec: Any, level: int | None) -> None:
    """Refuse a level that the codec does not have; some take it without a word, others fail on the way."""
    if level is None:
        return
    if codec == "uncompressed" or not pa.Codec.supports_compression_level(codec):
        raise ValueError(
            f"compression_level: {codec} has no levels: leave it out, or name another compression"
        )
    lowest, highest = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    if not lowest <= level <= highest:
        raise ValueError(f"compression_level: {codec} takes {lowest} to {highest}, not {level}")


def _select_columns(plan: Plan, columns: Any, table: str, sql: str) -> Plan:
    if not columns:
        return plan
    places = {fold_case(field.name): place for place, field in enumerate(plan.fields)}

    def reference(node: exp.Expr) -> ColumnRef:
        with errors_at(sql, node):
            if fold_case(node.name) not in places:
                hint = suggestion(node.name, [field.name for field in plan.fields])
                raise ValueError(f'table "{table}" has no column "{node.name}".{hint}')
        field = plan.fields[places[fold_case(node.name)]]
        return ColumnRef(places[fold_case(node.name)], field.name, field.type)

    chosen = apply_to_each(reference, columns, sql)
    return Project(plan, tuple(chosen), tuple(column.name for column in chosen))


def _format(named: Any, path: str, sql: str) -> str:
    """The format that is said, or that the path's suffix tells; CSV where it tells none."""
    seen: dict[object, str] = {}
    said = None
    for name, node, value in named:
        if name.lower() == "format":
            with errors_at(sql, node):
                note_option(seen, "format", "format")
                try:
                    said = word_reader(*FORMATS)(value)
                except ValueError as error:
                    raise ValueError(f"format: {error}") from None
    if said is not None:
        return said
    names = path.lower().rpartition("/")[2].split(".")
    suffix = names[-2] if len(names) > 2 and names[-1] in ("gz", "zst") else names[-1]
    return _SUFFIXES.get(suffix, "csv")


def bind_copy_from(tree: syntax.CopyFrom, sql: str, catalog: Catalog) -> Insert:
    """COPY table FROM a file: columns by position; of JSON by name.

    Raises:
        SqlError: no such table, column, file or option; columns that do not go together.
    """
    table = tree.this
    target = bind_table(table.name, table, sql, catalog)
    with errors_at(sql, table):
        try:
            defaults = Defaults(target, catalog_of(table, catalog).rules(table.name), catalog.fold_constants)
        except CatalogError as error:
            raise ValueError(str(error)) from error
    path, place = copy_path(tree.args["path"], sql), tree.args["path"]
    named = list(copy_options(tree))
    said = _format(named, path, sql)
    file_format = "csv" if said == "tsv" else said
    options = [option for option in named if option[0].lower() != "format"]
    request = file_request(file_format, options, sql, f"COPY FROM {file_format}")
    if said == "tsv" and request.options.delimiter is None:
        request = _replace_options(request, delimiter="\t")
    columns = tree.args.get("columns") or ()
    positions = target_positions(target, columns, sql)
    fields = [target.schema.field(position) for position in positions]
    if file_format == "csv":
        request = _replace_options(request, declared=tuple(enumerate(field.type for field in fields)))
    elif file_format == "json" and not request.types:
        request = json_columns(request, [(field.name, field.type) for field in fields])
    if request.options.paths.partitioned is None:
        # Columns go by position here: folders give some only where that is said.
        request = _replace_options(request, paths=replace(request.options.paths, partitioned=False))
    plan, _ = bind_files([path], file_format, place, sql, catalog, request)
    check_count(place, len(plan.fields), positions, target, sql)
    return Insert(target.name, arrange_columns(plan, positions, place, sql, defaults))


def _replace_options(request: FileRequest, **changes: Any) -> FileRequest:
    return replace(request, options=replace(request.options, **changes))
