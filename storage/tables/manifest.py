"""A table version: an immutable JSON file that names the version's schema and fragments.

The last member is a CRC-32C of all bytes before it, so nothing else of a damaged file is believed. A file
whose checksum is right is still checked member by member: it may come from a faulty or hostile writer.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import pyarrow as pa

from bamquery._native import crc32c
from bamquery.errors import CatalogError, CorruptionError, StorageError
from bamquery.storage.files.locks import MAX_VERSION, TOKEN_BITS
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import DEFAULT_ENCODING, ENCODINGS, Encoding
from bamquery.storage.format.storable_types import require_stored_schema
from bamquery.storage.fragments.schema_evolution import NO_EVOLUTION, SCHEMA_VERSIONS, Evolution
from bamquery.storage.tables import name as table_name
from bamquery.storage.tables.stored_view import StoredView

Operation: TypeAlias = Literal["create", "replace", "append", "optimize", "alter", "rename", "view", "drop"]

FORMAT: Final = "bamquery table version"
FORMAT_VERSION: Final = 4
"""Of all files of a table. Changed with every change to any of them."""
KNOWN_VERSIONS: Final = (3, FORMAT_VERSION)
"""What is read; in the earlier one nothing is encoded yet."""
MAX_FRAGMENT_ROWS: Final = 64 << 20

RECORDS: Final = "committed"
"""The database's folder of files that say which tables have been committed."""

_FILE_NAME: Final = re.compile(r"([0-9]{8,19})\.(?:json|committed)")
_FRAGMENT_ID: Final = re.compile(rf"([0-9a-f]{{{TOKEN_BITS // 4}}})-[0-9a-f]{{4,8}}")
_CHECKSUM: Final = re.compile(rb',\n "crc32c": "([0-9a-f]{8})"\n}\n\Z')
_MEMBERS: Final = frozenset(
    {"format", "format_version", "version", "table", "operation", "created_at", "schema", "rows", "fragments"}
)
_SOME_MEMBERS: Final = frozenset({"columns", SCHEMA_VERSIONS, "view", "origin", "heir", "encoding"})
"""Members that are there only where there is something to say."""


@dataclass(frozen=True, slots=True)
class Place:
    """A version of a table, by the name of its folder."""

    folder: str
    version: int

    @classmethod
    def from_json(cls, data: Any) -> Place:
        """What is in a manifest.

        Raises:
            ValueError: it is no such thing.
        """
        if not isinstance(data, dict) or set(data) != {"folder", "version"}:
            raise ValueError("a place must have a folder and a version")
        if not isinstance(data["folder"], str) or table_name.decode(data["folder"]) is None:
            raise ValueError(f"{data['folder']!r} is not a table's folder")
        return cls(data["folder"], _integer(data, "version", 1, MAX_VERSION))


@dataclass(frozen=True)
class Manifest:
    """One version of one table; `schema` is None, and there are no fragments, where it was dropped.

    A view is a table that has SQL in place of schema and fragments.
    """

    version: int
    table: str
    """As its creator wrote it."""
    operation: Operation
    created_at: datetime
    schema: pa.Schema | None
    fragments: tuple[FragmentEntry, ...]
    evolution: Evolution = NO_EVOLUTION
    view: StoredView | None = None
    origin: Place | None = None
    """Which version of another table must say that it has become this one, for this one to count."""
    heir: Place | None = None
    """Of a table that ended by a new name: the version that follows on it."""
    encoding: Encoding = DEFAULT_ENCODING
    """How what is written next is to be stored."""

    @property
    def is_table(self) -> bool:
        """True for a version that has rows, be they none."""
        return not self.dropped and self.view is None

    @property
    def kind(self) -> Literal["table", "view"]:
        """What it is, or was, a version of."""
        return "table" if self.view is None else "view"

    @property
    def dropped(self) -> bool:
        """True for the version that ends a table."""
        return self.operation == "drop"

    @property
    def rows(self) -> int:
        """Rows of all fragments."""
        return sum(entry.rows for entry in self.fragments)

    def to_bytes(self) -> bytes:
        """The file's content."""
        schema = None if self.schema is None else base64.b64encode(self.schema.serialize()).decode()
        some = self.evolution.to_json()
        if self.view is not None:
            some["view"] = self.view.to_json()
        for name, place in (("origin", self.origin), ("heir", self.heir)):
            if place is not None:
                some[name] = asdict(place)
        if self.encoding != DEFAULT_ENCODING:
            some["encoding"] = self.encoding
        members = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "version": self.version,
            "table": self.table,
            "operation": self.operation,
            "created_at": self.created_at.isoformat(),
            "schema": schema,
            "rows": self.rows,
            "fragments": [entry.to_json() for entry in self.fragments],
            **some,
        }
        covered = json.dumps(members, indent=1, allow_nan=False).encode()[: -len("\n}")]
        return covered + b',\n "crc32c": "%08x"\n}\n' % crc32c(covered)

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> Manifest:
        """Parse and check the content of the manifest at `path`.

        Raises:
            CorruptionError: it is not what a writer wrote; names the path.
            StorageError: it was written by another version of BamQuery.
        """
        tail = _CHECKSUM.search(data)
        if tail is None:
            raise CorruptionError(
                f"damaged: it does not end with a checksum (truncated?); {way_out(path)}", path
            )
        covered = data[: tail.start()]
        if crc32c(covered) != int(tail[1], 16):
            raise CorruptionError(f"damaged: its checksum does not match; {way_out(path)}", path)
        try:
            members = json.loads(covered + b"\n}", object_pairs_hook=_unique)
            return _parse(members, path)
        except StorageError as error:
            if error.path is not None:
                raise
            raise CorruptionError(f"damaged: {error}; {way_out(path)}", path) from error
        except (ValueError, RecursionError, OverflowError, pa.ArrowException, OSError) as error:
            raise CorruptionError(f"damaged: {error}; {way_out(path)}", path) from error


def way_out(path: Path) -> str:
    """What to do where the manifest at `path` is damaged."""
    folder = path.parent.parent
    return (
        f"put a copy of it back; or go back to the version before it, if {path.parent} has one, by removing "
        f"this file and {path.stem}.committed beside it; or give the table up: remove the folder "
        f"{folder} and the file {table_record(folder)}"
    )


def file_name(version: int) -> str:
    """The manifest's name."""
    return f"{version:08d}.json"


def commit_name(version: int) -> str:
    """The name of the empty file that says that a version was committed, so that its absence is noticed."""
    return f"{version:08d}.committed"


def table_record(folder: Path) -> Path:
    """The empty file that says that a version was committed in a table's folder, and is outside of it.

    So the absence of all versions, or of the folder, is noticed.
    """
    return folder.parent.parent / RECORDS / folder.name


def parse_file_name(name: str) -> int | None:
    """The version of the manifest of that name, or None where it is not a manifest's name."""
    return _parse_name(name, file_name)


def parse_commit_name(name: str) -> int | None:
    """The version that the file of that name says was committed, or None where it is no such file."""
    return _parse_name(name, commit_name)


def _parse_name(name: str, spelled: Callable[[int], str]) -> int | None:
    match = _FILE_NAME.fullmatch(name)
    if match is None:
        return None
    version = int(match[1])
    return version if 1 <= version <= MAX_VERSION and spelled(version) == name else None


def fragment_id(token: int, number: int) -> str:
    """The id of a writer's `number`-th fragment."""
    return f"{token:0{TOKEN_BITS // 4}x}-{number:04x}"


def writer_token(name: str) -> int | None:
    """The token with which a writer's file name or fragment id begins, or None."""
    match = re.match(rf"([0-9a-f]{{{TOKEN_BITS // 4}}})[-.]", name)
    return None if match is None else int(match[1], 16)


def _parse(members: Any, path: Path) -> Manifest:
    if not isinstance(members, dict) or members.get("format") != FORMAT:
        raise ValueError(f"it is not a {FORMAT}")
    format_version = _integer(members, "format_version", 1, 1 << 31)
    if format_version not in KNOWN_VERSIONS:
        later = format_version > FORMAT_VERSION
        age, remedy = ("a later", "upgrade") if later else ("an earlier", "load it anew")
        known = " and ".join(map(str, KNOWN_VERSIONS))
        raise StorageError(
            f"of {age} BamQuery (format {format_version}, this one knows {known}): {remedy}", path
        )
    if set(members) - _SOME_MEMBERS != _MEMBERS:
        raise ValueError(f"its members are {sorted(members)}, not {sorted(_MEMBERS)}")
    version = _integer(members, "version", 1, MAX_VERSION)
    if path.name != file_name(version):
        raise ValueError(f"it is version {version}, under another version's name")
    operation = members["operation"]
    if operation not in get_args(Operation):
        raise ValueError(f"there is no operation {operation!r}")
    entries = members["fragments"]
    if not isinstance(entries, list):
        raise ValueError("its fragments are not a list")
    view = StoredView.from_json(members["view"]) if "view" in members else None
    origin = Place.from_json(members["origin"]) if "origin" in members else None
    heir = Place.from_json(members["heir"]) if "heir" in members else None
    if (origin is not None and operation != "rename") or (heir is not None and operation != "drop"):
        raise ValueError(f"operation {operation!r} does not go with its members")
    if (operation == "view" and view is None) or (view is not None and operation not in ("view", "rename")):
        raise ValueError(f"operation {operation!r} does not go with its members")
    encoding = members.get("encoding", DEFAULT_ENCODING)
    if encoding not in ENCODINGS:
        raise ValueError(f"there is no encoding {encoding!r}")
    schema = None if operation == "drop" or view is not None else _schema(members["schema"])
    manifest = Manifest(
        version=version,
        table=_table(members["table"], path),
        operation=operation,
        created_at=_moment(members["created_at"]),
        schema=schema,
        fragments=_fragments(entries),
        evolution=NO_EVOLUTION if schema is None else Evolution.from_json(members, schema),
        view=view,
        origin=origin,
        heir=heir,
        encoding=encoding,
    )
    if schema is None and (manifest.fragments or members["schema"] is not None):
        raise ValueError("a dropped table or a view has neither schema nor fragments")
    if schema is None and not {"columns", SCHEMA_VERSIONS}.isdisjoint(members):
        raise ValueError("a dropped table or a view has no columns")
    for entry in manifest.fragments:
        if entry.schema_version is not None and entry.schema_version >= len(
            manifest.evolution.schema_versions
        ):
            raise ValueError(f"fragment {entry.id} is from a schema version that is not there")
    if manifest.rows != _integer(members, "rows", 0, 1 << 62):
        raise ValueError(f"it promises {members['rows']} rows, its fragments have {manifest.rows}")
    return manifest


def _table(name: Any, path: Path) -> str:
    """The table's name, which must be that of the folder two levels above."""
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is not a table's name")
    try:
        folder = table_name.encode(name)
    except CatalogError as error:
        raise ValueError(str(error)) from error
    if path.parent.parent.name != folder:
        raise ValueError(f'it belongs to table "{name}", not into this folder')
    return name


def _moment(text: Any) -> datetime:
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is not a moment")
    return datetime.fromisoformat(text)


def _schema(text: Any) -> pa.Schema:
    if not isinstance(text, str):
        raise ValueError("its schema is not text")
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"its schema is not base64: {error}") from error
    schema = pa.ipc.read_schema(pa.py_buffer(data))
    if not len(schema):
        raise ValueError("its schema has no columns")
    require_stored_schema(schema)
    return schema


def _fragments(entries: Sequence[Any]) -> tuple[FragmentEntry, ...]:
    fragments = tuple(FragmentEntry.from_json(entry) for entry in entries)
    for entry in fragments:
        if _FRAGMENT_ID.fullmatch(entry.id) is None:
            raise ValueError(f"{entry.id!r} is not a fragment's id")
        if not 1 <= entry.rows <= MAX_FRAGMENT_ROWS:
            raise ValueError(f"fragment {entry.id} cannot have {entry.rows} rows")
    if len({entry.id for entry in fragments}) != len(fragments):
        raise ValueError("a fragment occurs twice")
    return fragments


def _integer(members: dict[str, Any], name: str, least: int, most: int) -> int:
    value = members.get(name)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} cannot be {value!r}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member occurs twice")
    return members
