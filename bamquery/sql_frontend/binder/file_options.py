"""Options of read_csv() and its like, and of COPY: names and values to what readers and writers take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, get_args

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from bamquery.sql_frontend.binder.option_values import (
    boolean,
    character,
    column_names,
    count,
    date_format,
    null_strings,
    sample_size,
    string_value,
    unwrap,
    word_reader,
)
from bamquery.sql_frontend.fault_collection import FaultCollector, errors_at
from bamquery.sql_frontend.sql_types import from_syntax, unknown_type
from bamquery.storage.ingest.sources.options import FILENAME, Compression, FileOptions
from bamquery.storage.ingest.sources.paths import is_url
from bamquery.text.identifiers import fold_case, suggestion


@dataclass(frozen=True, slots=True)
class FileRequest:
    """What a statement says of the files that it reads.

    Attributes:
        options: for who opens them.
        types: of columns by name or position, to which they are cast.
        columns: the names that there are to be, in this order; None: those of the files.
        key_types: of columns that are keys of folders, to which they are cast.
    """

    options: FileOptions = field(default_factory=FileOptions)
    types: tuple[tuple[str | int, pa.DataType], ...] = ()
    columns: tuple[str, ...] | None = None
    key_types: tuple[tuple[str, pa.DataType], ...] = ()


Named = Sequence[tuple[str, exp.Expr, exp.Expr | None]]
"""Of each option the name, the node to point at, and the value, None where it is left out."""

CSV_MARKS: Final[Mapping[str, str]] = MappingProxyType(
    {"delimiter": ",", "quote": '"', "escape": '"', "null": ""}
)
"""What a CSV file that COPY writes has between and around values, and for null, unless it is said."""

_TYPES_BY_NAME: Final = "types by name, such as {'a': 'INTEGER'}"

_Set = Callable[[FileRequest, Any], FileRequest]
_Options = Mapping[str, tuple[Callable[[exp.Expr | None], Any], _Set]]


def arguments(node: exp.Expr) -> tuple[list[exp.Expr], Named]:
    """The arguments of a table function without and with names; `header = true` and `header := true`."""
    plain, named = [], []
    for argument in node.expressions:
        left = argument.this if isinstance(argument, (exp.EQ, exp.PropertyEQ)) else None
        if isinstance(left, (exp.Column, exp.Identifier)) and not left.args.get("table"):
            named.append((left.name, argument, argument.expression))
        else:
            plain.append(argument)
    return plain, named


def copy_path(node: exp.Expr, sql: str) -> str:
    """The path of a COPY."""
    path = node.unnest()
    with errors_at(sql, path):
        if not isinstance(path, exp.Literal) or not path.args["is_string"]:
            raise ValueError("a path is a string")
        if is_url(str(path.this)):
            raise ValueError("a URL is not supported: files are those of this machine")
    return str(path.this)


def copy_options(tree: exp.Expr) -> Named:
    """The options of a COPY."""
    return [
        (option.this.name, option, option.args.get("expression")) for option in tree.args.get("options") or ()
    ]


def file_request(file_format: str, named: Named, sql: str, what: str) -> FileRequest:
    """What the options of a reader say.

    Raises:
        SqlError: options that the format has not, or values that they cannot have; all of them.
    """
    known = {**_EVERY_FORMAT, **_BY_FORMAT[file_format]}
    request = FileRequest()
    faults = FaultCollector(sql)
    seen: dict[object, str] = {}
    for name, node, value in named:
        with faults.collect(), errors_at(sql, node):
            option = known.get(name.lower())
            if option is None:
                hint = suggestion(name, known)
                raise ValueError(f"{what} has no option {name.lower()}.{hint} Options: {', '.join(known)}")
            note_option(seen, option, name.lower())
            read, put = option
            try:
                request = put(request, read(value))
            except ValueError as error:
                raise ValueError(f"{name.lower()}: {error}") from None
    faults.check()
    return request


def note_option(seen: dict[object, str], option: object, name: str) -> None:
    """Note in `seen` that an option was given, and by which of its names.

    Raises:
        ValueError: it was given before, under this name or another.
    """
    first = seen.get(option)
    seen[option] = name
    if first == name:
        raise ValueError(f"{name} is given twice")
    if first is not None:
        raise ValueError(f"{first} and {name} are one option: give one of them")


def _types(value: exp.Expr | None) -> tuple[tuple[str | int, pa.DataType], ...]:
    """`{'a': 'INTEGER', …}`, or a list of types for the first columns."""
    value = unwrap(value)
    if isinstance(value, (exp.Array, exp.Tuple)):
        return tuple(
            (i, _type(string_value(one, "types as strings"))) for i, one in enumerate(value.expressions)
        )
    if isinstance(value, exp.Struct):
        if not all(isinstance(pair.this, exp.Expr) for pair in value.expressions):
            raise ValueError(f"it takes {_TYPES_BY_NAME}: a type has no name here")
        names = [pair.this.name for pair in value.expressions]
        for name, times in Counter(names).items():
            if times > 1:
                raise ValueError(f'"{name}" is given {times} types')
        return tuple(
            (name, _type(string_value(pair.expression, _TYPES_BY_NAME)))
            for name, pair in zip(names, value.expressions, strict=True)
        )
    raise ValueError(f"it takes {_TYPES_BY_NAME}")


def _type(words: str) -> pa.DataType:
    try:
        node: Any = exp.DataType.build(words, dialect="duckdb")
    except (ParseError, TokenError, ValueError):
        node = None
    if not isinstance(node, exp.DataType):
        raise ValueError(unknown_type(words))
    if node.args.get("nested") or node.this in exp.DataType.NESTED_TYPES:
        raise ValueError(f"{words}: a nested type is not supported")
    # Of parameters, types here have numbers only; an ENUM has strings.
    has_numbers = all(parameter.name.isdecimal() for parameter in node.expressions)
    kind = from_syntax(node) if has_numbers else None
    if kind is None:
        raise ValueError(unknown_type(words))
    return kind


def _allow_only(*allowed: object) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if value not in allowed:
            raise ValueError(f"{value!r} is not supported")

    return check


def _ignore_option(*allowed: object) -> _Set:
    """For what has one meaning here, which is said for DuckDB's sake."""
    check = _allow_only(*allowed)

    def check_value(request: FileRequest, value: Any) -> FileRequest:
        check(value)
        return request

    return check_value


def _option(name: str) -> _Set:
    return lambda request, value: replace(request, options=replace(request.options, **{name: value}))


def _store_rejects(request: FileRequest, value: bool) -> FileRequest:
    if not value:
        return request
    return replace(request, options=replace(request.options, ignore_errors=True, store_rejects=True))


def _delimiter(request: FileRequest, value: str) -> FileRequest:
    if value == '"':
        raise ValueError("'\"' is the quote already, and no value could be told from the next one")
    return replace(request, options=replace(request.options, delimiter=value))


def _csv_types(request: FileRequest, types: tuple[tuple[str | int, pa.DataType], ...]) -> FileRequest:
    return replace(request, types=types, options=replace(request.options, declared=types))


def _csv_columns(request: FileRequest, types: tuple[tuple[str | int, pa.DataType], ...]) -> FileRequest:
    names = tuple(str(name) for name, _ in types)
    by_place = tuple((place, kind) for place, (_, kind) in enumerate(types))
    request = _csv_types(request, by_place)
    return replace(request, columns=names, options=replace(request.options, names=names))


def _json_columns(request: FileRequest, types: tuple[tuple[str | int, pa.DataType], ...]) -> FileRequest:
    if not all(isinstance(name, str) for name, _ in types):
        raise ValueError(f"it takes {_TYPES_BY_NAME}")
    return json_columns(request, [(str(name), kind) for name, kind in types])


def json_columns(request: FileRequest, types: Sequence[tuple[str, pa.DataType]]) -> FileRequest:
    """`request` for the members of these names, as columns of these types."""
    members = tuple(types)
    return replace(
        request,
        types=members,
        columns=tuple(name for name, _ in members),
        options=replace(request.options, members=members),
    )


def _json_format(request: FileRequest, value: str) -> FileRequest:
    layouts = {
        "auto": "auto",
        "newline_delimited": "lines",
        "nd": "lines",
        "array": "array",
        "unstructured": "objects",
    }
    if fold_case(value) not in layouts:
        raise ValueError(f"it takes one of {', '.join(layouts)}")
    return replace(request, options=replace(request.options, layout=layouts[fold_case(value)]))


def _path_option(name: str) -> _Set:
    def set_option(request: FileRequest, value: Any) -> FileRequest:
        paths = replace(request.options.paths, **{name: value})
        if request.key_types and paths.partitioned is False:
            raise ValueError("hive_types are of partitions: leave out hive_partitioning = false")
        return replace(request, options=replace(request.options, paths=paths))

    return set_option


def _hive_types(request: FileRequest, types: tuple[tuple[str | int, pa.DataType], ...]) -> FileRequest:
    if not all(isinstance(name, str) for name, _ in types):
        raise ValueError(f"it takes {_TYPES_BY_NAME}")
    request = replace(request, key_types=tuple((str(name), kind) for name, kind in types))
    request = _path_option("partition_strings")(request, tuple(name for name, _ in request.key_types))
    return request if request.options.paths.partitioned else _path_option("partitioned")(request, True)


def _filename(value: exp.Expr | None) -> str:
    """TRUE or FALSE, or what the column is called."""
    given = unwrap(value)
    try:
        return FILENAME if boolean(given) else ""
    except ValueError:
        if not isinstance(given, exp.Literal) or not given.args["is_string"] or not given.this:
            raise ValueError("it takes TRUE, FALSE or a name for the column") from None
        return str(given.this)


_DATE_OPTIONS: Final[_Options] = MappingProxyType(
    {
        **dict.fromkeys(("dateformat", "date_format"), (date_format("date"), _option("date_format"))),
        **dict.fromkeys(
            ("timestampformat", "timestamp_format"), (date_format("timestamp"), _option("timestamp_format"))
        ),
        "sample_size": (sample_size, lambda request, rows: request),
    }
)
_EVERY_FORMAT: Final[_Options] = MappingProxyType(
    {
        "filename": (_filename, _path_option("filename")),
        "union_by_name": (boolean, _option("union_by_name")),
        "hive_partitioning": (boolean, _path_option("partitioned")),
        "hive_types": (_types, _hive_types),
        "hive_types_autocast": (boolean, _path_option("guess_types")),
    }
)
_ROW_NUMBER: Final = (boolean, _path_option("row_number"))
_BY_FORMAT: Final[Mapping[str, _Options]] = MappingProxyType(
    {
        "parquet": {
            "file_row_number": _ROW_NUMBER,
            "compression": (string_value, _ignore_option("auto")),
        },
        "arrow": {"file_row_number": _ROW_NUMBER},
        "json": {
            "columns": (_types, _json_columns),
            "format": (string_value, _json_format),
            "auto_detect": (boolean, _ignore_option(True)),
            **_DATE_OPTIONS,
            "compression": (word_reader(*get_args(Compression)), _option("compression")),
        },
        "csv": {
            **dict.fromkeys(("delim", "sep", "delimiter"), (character, _delimiter)),
            "header": (boolean, _option("header")),
            "skip": (count, _option("skip")),
            **_DATE_OPTIONS,
            **dict.fromkeys(("nullstr", "null"), (null_strings, _option("nulls"))),
            **dict.fromkeys(("names", "column_names"), (column_names, _option("names"))),
            **dict.fromkeys(("types", "dtypes", "column_types"), (_types, _csv_types)),
            "columns": (_types, _csv_columns),
            "all_varchar": (boolean, _option("all_text")),
            "ignore_errors": (boolean, _option("ignore_errors")),
            "store_rejects": (boolean, _store_rejects),
            "auto_detect": (boolean, _ignore_option(True)),
            "quote": (string_value, _ignore_option('"')),
            "escape": (string_value, _ignore_option('"')),
            "compression": (word_reader(*get_args(Compression)), _option("compression")),
        },
    }
)
