"""What a table's columns are beyond name and type, and how fragments older than a change of them are read.

ALTER rewrites nothing: the new version says of each fragment that was written under other columns which of
its own columns the table still has, and under which names. A column that such a fragment lacks has one value
in all of its rows.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa

from bamquery.storage.format.array_validation import validate
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.storable_types import require_stored_schema

Scalar: TypeAlias = "pa.Scalar[Any]"
SCHEMA_VERSIONS: Final = "eras"
"""The member of a manifest that has them, by the name that format 3 gave it."""
_RULE_KEYS: Final = frozenset({"not_null", "default", "initial"})


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """What a column demands and gives beyond its type."""

    not_null: bool = False
    """Whether rows with a null in it are refused."""
    default: str | None = None
    """SQL of the value of rows that are inserted without one; None: null."""
    initial: Scalar | None = None
    """The value in rows that are older than the column; None: null."""


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """Columns that the table once had; `columns`: where each of today's is among them, None if it is not."""

    schema: pa.Schema
    columns: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class FragmentColumns:
    """A fragment's columns as the table has them today.

    Attributes:
        written: all columns of its files.
        positions: where those are that the table still has, in the table's order.
        schema: these, under the table's names.
    """

    written: pa.Schema
    positions: tuple[int, ...]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Evolution:
    """Rules of a version's columns, one each or none at all, and its fragments' schema versions."""

    rules: tuple[ColumnRule, ...] = ()
    schema_versions: tuple[SchemaVersion, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules or self.schema_versions)

    def rule(self, column: int) -> ColumnRule:
        """The rule of a column."""
        return self.rules[column] if self.rules else ColumnRule()

    def columns(self, schema: pa.Schema, entry: FragmentEntry) -> FragmentColumns:
        """What a fragment of a table of `schema` has of its columns."""
        if entry.schema_version is None:
            return FragmentColumns(schema, tuple(range(len(schema))), schema)
        version = self.schema_versions[entry.schema_version]
        present = [(place, field) for place, field in zip(version.columns, schema, strict=True)]
        kept = [(place, field) for place, field in present if place is not None]
        return FragmentColumns(
            version.schema, tuple(place for place, _ in kept), pa.schema([field for _, field in kept])
        )

    def drop_unused_versions(
        self, fragments: Sequence[FragmentEntry]
    ) -> tuple[Evolution, tuple[FragmentEntry, ...]]:
        """The same without schemas that no fragment is from, and without rules that say nothing."""
        used = sorted({entry.schema_version for entry in fragments if entry.schema_version is not None})
        moved = {number: position for position, number in enumerate(used)}
        entries = [
            e if e.schema_version is None else replace(e, schema_version=moved[e.schema_version])
            for e in fragments
        ]
        rules = self.rules
        if not used:  # nothing is older than any column
            rules = tuple(replace(rule, initial=None) for rule in rules)
        if all(rule == ColumnRule() for rule in rules):
            rules = ()
        return Evolution(rules, tuple(self.schema_versions[number] for number in used)), tuple(entries)

    def to_json(self) -> dict[str, Any]:
        """Members for the manifest; none where there is nothing to say."""
        members: dict[str, Any] = {}
        if self.rules:
            members["columns"] = [_rule_to_json(rule) for rule in self.rules]
        if self.schema_versions:
            members[SCHEMA_VERSIONS] = [
                {"schema": _text(version.schema.serialize()), "columns": list(version.columns)}
                for version in self.schema_versions
            ]
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any], schema: pa.Schema) -> Evolution:
        """What `to_json` made, of a table of `schema`.

        Raises:
            ValueError, pa.ArrowException, OSError: anything else.
        """
        rules = _list(members.get("columns", []), "columns")
        versions = _list(members.get(SCHEMA_VERSIONS, []), "schema versions")
        if rules and len(rules) != len(schema):
            raise ValueError(f"it has {len(rules)} rules for {len(schema)} columns")
        return cls(
            tuple(_rule(data, field) for data, field in zip(rules, schema, strict=False)),
            tuple(_parse_schema_version(data, schema) for data in versions),
        )


NO_EVOLUTION: Final = Evolution()


def _rule_to_json(rule: ColumnRule) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if rule.not_null:
        data["not_null"] = True
    if rule.default is not None:
        data["default"] = rule.default
    if rule.initial is not None:
        batch = pa.record_batch([pa.array([rule.initial], rule.initial.type)], ["initial"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data["initial"] = _text(sink.getvalue())
    return data


def _rule(data: Any, field: pa.Field[Any]) -> ColumnRule:
    if not isinstance(data, dict) or not set(data) <= _RULE_KEYS:
        raise ValueError(f'{data!r} is not a rule of column "{field.name}"')
    not_null, default = data.get("not_null", False), data.get("default")
    if not isinstance(not_null, bool) or not (default is None or isinstance(default, str)):
        raise ValueError(f'{data!r} is not a rule of column "{field.name}"')
    initial: Scalar | None = None
    if "initial" in data:
        with pa.ipc.open_stream(_bytes(data["initial"])) as reader:
            table = reader.read_all()
        for chunk in table.column(0).chunks if table.num_columns else ():
            validate(chunk)
        if table.num_rows != 1 or table.num_columns != 1 or table.column(0).type != field.type:
            raise ValueError(f'the first value of column "{field.name}" is not one of type {field.type}')
        initial = table.column(0)[0]
    return ColumnRule(not_null, default, initial)


def _parse_schema_version(data: Any, schema: pa.Schema) -> SchemaVersion:
    if not isinstance(data, dict) or set(data) != {"schema", "columns"}:
        raise ValueError("a schema version must have a schema and columns")
    written = pa.ipc.read_schema(_bytes(data["schema"]))
    if not len(written):
        raise ValueError("a schema version has no columns")
    require_stored_schema(written)
    columns = _list(data["columns"], "columns of a schema version")
    if len(columns) != len(schema):
        raise ValueError(f"a schema version knows {len(columns)} columns of {len(schema)}")
    for place, field in zip(columns, schema, strict=True):
        if place is None:
            continue
        if type(place) is not int or not 0 <= place < len(written):
            raise ValueError(f"a schema version has no column {place!r}")
        if written.field(place).type != field.type:
            raise ValueError(f'column "{field.name}" was of another type')
    known = [place for place in columns if place is not None]
    if len(set(known)) != len(known):
        raise ValueError("a column of a schema version is two of today's")
    return SchemaVersion(written, tuple(columns))


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"its {what} are not a list")
    return value


def _text(data: pa.Buffer) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: Any) -> pa.Buffer:
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is not text")
    return pa.py_buffer(base64.b64decode(text, validate=True))
