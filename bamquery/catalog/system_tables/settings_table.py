"""duckdb_settings() and current_setting()."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

import pyarrow as pa

from bamquery.catalog.system_tables.facts import CatalogFacts
from bamquery.catalog.system_tables.rows import BIGINT, BOOLEAN, VARCHAR, SystemTable, columns, list_text
from bamquery.data_types.names import type_name
from bamquery.engine.human_units import human_bytes
from bamquery.engine.settings import Settings, parse_bytes
from bamquery.text.identifiers import fold_case

_KINDS: Final[Mapping[str, pa.DataType]] = {"bool": BOOLEAN, "int": BIGINT, "float": pa.float64()}


def setting_value(settings: Settings, name: str) -> pa.Scalar[Any]:
    """The value of a setting, with the default filled in; null where it has none.

    Raises:
        SettingError: there is no such setting.
    """
    Settings().with_value(name, None)  # says so where there is none; these may be locked
    folded = fold_case(name)
    value = getattr(settings, f"effective_{folded}", getattr(settings, folded))
    kind = _kind(folded)
    if value is not None and _is_size(folded):
        value = _size(value)
    elif isinstance(value, tuple):
        value = list_text(value)
    elif value is not None and kind == VARCHAR:
        value = str(value).lower() if isinstance(value, bool) else str(value)
    return pa.scalar(value, kind)


def _kind(name: str) -> pa.DataType:
    """The type of the setting's value in SQL."""
    declared = next(str(field.type) for field in fields(Settings) if field.name == name)
    words = {word.strip() for word in declared.split("|")} - {"None"}
    plain = len(words) == 1 and not _is_size(name)
    return _KINDS.get(words.pop(), VARCHAR) if plain else VARCHAR


def _is_size(name: str) -> bool:
    return name.endswith("memory_limit")


def _size(value: int) -> str:
    """A number of bytes as SET takes it, none lost."""
    text = human_bytes(value)
    return text if parse_bytes(text) == value else f"{value} B"


def _rows(facts: CatalogFacts) -> Iterator[tuple[Any, ...]]:
    said = _descriptions()
    for name in sorted(field.name for field in fields(Settings)):
        value = setting_value(facts.settings, name)
        found = value.as_py()
        text = None if found is None else str(found).lower() if isinstance(found, bool) else str(found)
        yield name, text, said.get(name), type_name(value.type), "LOCAL", list_text([]), text


@functools.cache
def _descriptions() -> Mapping[str, str]:
    """What the documentation of settings says of each: the text behind its field, where there are sources."""
    try:
        tree = ast.parse(inspect.getsource(Settings))
    except OSError:
        return {}
    (kind,) = tree.body
    assert isinstance(kind, ast.ClassDef)
    described = {}
    for field, text in itertools.pairwise(kind.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                described[name] = inspect.cleandoc(words)
    return described


SETTINGS: Final = SystemTable(
    columns(
        name=VARCHAR,
        value=VARCHAR,
        description=VARCHAR,
        input_type=VARCHAR,
        scope=VARCHAR,
        aliases=VARCHAR,
        typed_value=VARCHAR,
    ),
    _rows,
)
