"""ALTER TABLE: the columns of a version changed, and the fragments that were written under the old ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from bamquery.errors import CatalogError, ConstraintError
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import DEFAULT_ENCODING, Encoding
from bamquery.storage.format.storable_types import require_stored_schema
from bamquery.storage.fragments.schema_evolution import ColumnRule, Evolution, SchemaVersion
from bamquery.text.identifiers import fold_case, suggestion


@dataclass(frozen=True)
class Shape:
    """What ALTER looks at and changes of a version."""

    table: str
    schema: pa.Schema
    evolution: Evolution
    fragments: tuple[FragmentEntry, ...]
    encoding: Encoding = DEFAULT_ENCODING


def add_column(shape: Shape, name: str, type_: pa.DataType, rule: ColumnRule) -> Shape:
    """A further column, the last one.

    Raises:
        CatalogError: there is one of this name. StorageError: tables cannot hold its type.
        ConstraintError: it is NOT NULL and would be null in rows that are there.
    """
    _require_free(shape, name)
    added = shape.schema.append(pa.field(name, type_))
    require_stored_schema(added)
    if rule.not_null and rule.initial is None and shape.fragments:
        raise ConstraintError(
            f'column "{name}" is NOT NULL, and table "{shape.table}" has rows: give it a default'
        )
    kept: list[int | None] = [*range(len(shape.schema)), None]
    return _change_columns(shape, added, kept, [*_rules(shape), rule])


def drop_column(shape: Shape, name: str) -> Shape:
    """All columns but one.

    Raises:
        CatalogError: there is no such column, or no other.
    """
    position = column_position(shape.table, shape.schema, name)
    if len(shape.schema) == 1:
        raise CatalogError(f'"{name}" is the only column of table "{shape.table}": drop the table instead')
    kept = [i for i in range(len(shape.schema)) if i != position]
    rules = _rules(shape)
    return _change_columns(shape, shape.schema.remove(position), kept, [rules[i] for i in kept])


def rename_column(shape: Shape, name: str, new: str) -> Shape:
    """A column called otherwise.

    Raises:
        CatalogError: there is no such column, or one of the new name.
    """
    position = column_position(shape.table, shape.schema, name)
    if fold_case(new) != fold_case(name):
        _require_free(shape, new)
    schema = shape.schema.set(position, shape.schema.field(position).with_name(new))
    require_stored_schema(schema)
    return _change_columns(shape, schema, list(range(len(schema))), _rules(shape))


def column_position(table: str, schema: pa.Schema, name: str) -> int:
    """Where a column is, by its name without regard to case.

    Raises:
        CatalogError: there is none; suggests the nearest name.
    """
    for position, other in enumerate(schema.names):
        if fold_case(other) == fold_case(name):
            return position
    raise CatalogError(f'table "{table}" has no column "{name}".{suggestion(name, schema.names)}')


def _require_free(shape: Shape, name: str) -> None:
    for other in shape.schema.names:
        if fold_case(other) == fold_case(name):
            raise CatalogError(f'table "{shape.table}" has a column "{other}" already')


def _rules(shape: Shape) -> list[ColumnRule]:
    return [shape.evolution.rule(column) for column in range(len(shape.schema))]


def _change_columns(
    shape: Shape, schema: pa.Schema, kept: Sequence[int | None], rules: Sequence[ColumnRule]
) -> Shape:
    """The shape with other columns, of which number i was number `kept[i]` before."""
    versions = [
        SchemaVersion(version.schema, tuple(None if i is None else version.columns[i] for i in kept))
        for version in shape.evolution.schema_versions
    ]
    fragments = shape.fragments
    if any(entry.schema_version is None for entry in fragments):
        fragments = tuple(
            replace(e, schema_version=len(versions)) if e.schema_version is None else e for e in fragments
        )
        versions.append(SchemaVersion(shape.schema, tuple(kept)))
    evolution = Evolution(tuple(rules), tuple(versions))
    return replace(shape, schema=schema, evolution=evolution, fragments=fragments)
