"""COPY TO … (PARTITION_BY …): options to keys, and an order of rows in which one file follows another."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types.type_groups import is_interval
from bamquery.plan.bound_statements import Partitioning
from bamquery.plan.expressions import ColumnRef, Expression, SortKey
from bamquery.plan.nodes import Field, Plan, Sort
from bamquery.sql_frontend.binder.option_values import boolean, string_value, string_values
from bamquery.sql_frontend.functions.operators import explicit_cast
from bamquery.sql_frontend.sql_types import type_name
from bamquery.text.identifiers import fold_case, suggestion

_KINDS: Final = ("overwrite", "overwrite_or_ignore", "append")
_LABEL: Final = re.compile(r"\{(?:i|uuid|uuidv4|uuidv7)\}")


def _keys(value: exp.Expr | None) -> tuple[str, ...]:
    if isinstance(value, exp.Star):
        return ("*",)
    found = string_values(value, "columns in parentheses, or *")
    if not found:
        raise ValueError("it takes columns in parentheses, or *")
    return found


def _file_name(value: exp.Expr | None) -> str:
    found = string_value(value, "a name for files")
    if not found or "/" in found or "\0" in found:
        raise ValueError("it takes a name for files, without /")
    return found


PARTITION_OPTIONS: Final[Mapping[str, tuple[str, Callable[[exp.Expr | None], Any]]]] = MappingProxyType(
    {
        "partition_by": ("partition_by", _keys),
        "overwrite": ("overwrite", boolean),
        "overwrite_or_ignore": ("overwrite_or_ignore", boolean),
        "append": ("append", boolean),
        "filename_pattern": ("filename_pattern", _file_name),
        "file_extension": ("file_extension", _file_name),
        "write_partition_columns": ("write_partition_columns", boolean),
    }
)
"""As in `copy_statements`, for every format."""


def bind_partitioning(
    plan: Plan, options: dict[str, Any], extension: str
) -> tuple[Plan, Partitioning | None]:
    """Take the options out of those of COPY TO, and make of them a plan in whose order files are written.

    Raises:
        ValueError: no such column, one that cannot name folders, or options that do not go together.
    """
    given = {name: options.pop(name) for name in PARTITION_OPTIONS if name in options}
    if "partition_by" not in given:
        # One file takes the place of another anyway.
        wrong = next((name for name in given if not name.startswith("overwrite")), None)
        if wrong is not None:
            raise ValueError(f"{wrong} is for files in folders: say by which columns with PARTITION_BY")
        return plan, None
    modes = [name for name in _KINDS if name in given]
    if len(modes) > 1:
        raise ValueError(f"{' and '.join(modes)}: give one of them")
    mode = modes[0] if modes and given[modes[0]] else "error"
    keys = _positions(given["partition_by"], plan.fields)
    writes_keys = bool(given.get("write_partition_columns", False))
    if not writes_keys and len(keys) == len(plan.fields):
        raise ValueError(
            "every column is in PARTITION_BY, and none is left to write: WRITE_PARTITION_COLUMNS"
        )
    name = given.get("filename_pattern", "{uuid}" if mode == "append" else "data_")
    if mode == "append" and "{uuid" not in name:
        raise ValueError("append needs {uuid} in filename_pattern, as no file there is to be replaced")
    if _LABEL.search(name) is None:
        name += "{i}"
    extension = given.get("file_extension", extension)
    order = tuple(SortKey(_sortable(plan.fields[place], place)) for place in keys)
    return Sort(plan, order), Partitioning(keys, mode, name, extension, writes_keys)


def _positions(names: tuple[str, ...], fields: tuple[Field, ...]) -> tuple[int, ...]:
    if names == ("*",):
        return tuple(range(len(fields)))
    places = {fold_case(field.name): place for place, field in reversed(list(enumerate(fields)))}
    found: list[int] = []
    for name in names:
        if fold_case(name) not in places:
            hint = suggestion(name, [field.name for field in fields])
            raise ValueError(f'partition_by: there is no column "{name}".{hint}')
        if places[fold_case(name)] in found:
            raise ValueError(f'partition_by: column "{name}" is given twice')
        found.append(places[fold_case(name)])
    return tuple(found)


def _sortable(field: Field, place: int) -> Expression:
    """What brings rows of one folder together: its text, where equal values have different ones."""
    column = ColumnRef(place, field.name, field.type)
    if pa.types.is_nested(field.type):
        kind = type_name(field.type)
        raise ValueError(f'partition_by: column "{field.name}" is {kind}, which names no folder')
    if pa.types.is_floating(field.type) or is_interval(field.type):
        return explicit_cast(column, pa.large_string())
    return column
