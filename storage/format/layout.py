"""Where the bytes of a fragment are: vectors, extents and what the vectors file records about file one."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from bamquery.errors import CorruptionError
from bamquery.storage.format.lazy_sequence import LazySequence

VECTOR_ROWS: Final = 1024
"""Rows of a vector: vector v holds rows [1024 v, 1024 (v + 1)) of its fragment."""

Encoding: TypeAlias = Literal["auto", "plain"]
"""How a table's columns may be stored: as is smallest, or so that any Arrow reader sees values."""

ENCODINGS: Final[tuple[Encoding, ...]] = ("auto", "plain")
DEFAULT_ENCODING: Final[Encoding] = "auto"
"""Of tables that users make, and of those whose version says nothing of it."""


def known_encoding(text: str) -> Encoding:
    """The encoding of that name."""
    return "plain" if text == "plain" else "auto"


ALIGNMENT: Final = 4096
"""Every buffer of file one starts at a multiple of this many bytes, so a row's block is arithmetic."""


LOAD_BYTES: Final = 8
"""What readers take from where a packed value begins: as many zeros, at least, follow on the last one."""

NUMBER_PARAMETERS: Final = 16
STRING_PARAMETERS: Final = 48
"""Bytes of decode parameters of a vector."""

MOST_SYMBOLS: Final = 255
MOST_SYMBOL_BYTES: Final = 8

CELLS_ALIGNMENT: Final = 64
"""Offsets that only Arrow reads start at a multiple of this many bytes."""


def vector_count(rows: int) -> int:
    """Vectors that `rows` rows make; the last may be short."""
    return -(-rows // VECTOR_ROWS)


def align(offset: int, alignment: int = ALIGNMENT) -> int:
    """The smallest multiple of `alignment` that is not below `offset`."""
    return -(-offset // alignment) * alignment


@dataclass(frozen=True, slots=True)
class Extent:
    """A run of bytes of file one: [offset, offset + length)."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class DictionaryLayout:
    """The dictionary batch of one column: `values` are never null; CRC-32C of each buffer."""

    size: int
    offsets: Extent | None
    values: Extent
    offsets_crc: int
    values_crc: int


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """How a column is encoded whose `ColumnLayout.values` are payloads, one a vector.

    Values of form 0 are `origin + divisor * (base + code)`, modulo 2^64; see `storage/encodings/packed`. With
    `symbols` they are strings; see `storage/encodings/fsst`.
    """

    divisor: int
    origin: int
    has_nulls: bool
    cells: Extent
    """Where each payload ends, as Arrow has it: 64-bit numbers, one more than there are vectors."""
    lists: Extent | None = None
    """Of a column with a dictionary: the same of lists of its values, all of them in the first vector's."""
    plain_bytes: int = 0
    """Of strings: bytes of all rows' values."""
    symbols: bytes | None = None
    """Of strings without a dictionary: how many symbols, each one's length, their bytes."""

    @property
    def parameter_bytes(self) -> int:
        """What a vector is decoded by, beside its statistics."""
        return NUMBER_PARAMETERS if self.symbols is None else STRING_PARAMETERS


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The buffers of one column; `validity` is None where no value is null, `offsets` but for strings."""

    validity: Extent | None
    offsets: Extent | None
    values: Extent
    dictionary: DictionaryLayout | None = None
    encoding: PackedLayout | None = None
    """None: plain, as Arrow has values in memory."""

    @property
    def buffers(self) -> tuple[Extent, ...]:
        """All that readers read, dictionary included."""
        own = (self.validity, self.offsets, self.values)
        theirs = (self.dictionary.offsets, self.dictionary.values) if self.dictionary else ()
        return tuple(extent for extent in own + theirs if extent is not None)

    @property
    def ends(self) -> tuple[Extent, ...]:
        """Offsets that only Arrow reads."""
        packed = (self.encoding.cells, self.encoding.lists) if self.encoding else ()
        return tuple(extent for extent in packed if extent is not None)

    @property
    def extents(self) -> tuple[Extent, ...]:
        """All bytes that belong to it."""
        return self.buffers + self.ends

    @property
    def has_nulls(self) -> bool:
        """Whether a value is null."""
        return self.validity is not None or (self.encoding is not None and self.encoding.has_nulls)


@dataclass(frozen=True)
class FragmentLayout:
    """File one as a whole: buffers, runs of IPC metadata, and zeros between them."""

    rows: int
    columns: Sequence[ColumnLayout]
    """Of a file: one that cannot be is a CorruptionError when it is asked for."""
    metadata: tuple[tuple[Extent, int], ...]
    """Runs that hold IPC metadata, with the CRC-32C of each; the last one ends the file."""
    encoding: Encoding = "plain"
    """What was asked for when it was written, whatever came of it."""
    lists: Extent | None = None
    """Of a file of one row a vector: where each one's rows end, for Arrow; its plain columns share it."""

    @cached_property  # asked for each column of thousands
    def is_encoded(self) -> bool:
        """Whether file one has a row for each vector, because a column is encoded."""
        return any(column.encoding is not None for column in self.columns)

    @property
    def extents(self) -> tuple[Extent, ...]:
        """All bytes that belong to something."""
        own = [extent for extent, _ in self.metadata]
        own += [extent for column in self.columns for extent in column.extents]
        return tuple(own if self.lists is None else [*own, self.lists])

    def to_json(self) -> str:
        """Compact text, for the vectors file's schema metadata."""
        members: dict[str, Any] = {
            "rows": self.rows,
            "columns": [_column_to_json(column) for column in self.columns],
            "metadata": [[extent.offset, extent.length, crc] for extent, crc in self.metadata],
        }
        if self.encoding != "plain":
            members["encoding"] = self.encoding
        if self.lists is not None:
            members["lists"] = [self.lists.offset, self.lists.length]
        return json.dumps(members, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes, path: Path) -> FragmentLayout:
        """Parse what `to_json` made; each column when it is asked for.

        Raises:
            CorruptionError: the text is not such a layout; names `path`.
        """

        def column(position: int) -> ColumnLayout:
            try:
                return _column_from_json(columns[position])
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptionError(f"its buffer layout cannot be read: {error!r}", path) from error

        try:
            data = json.loads(text)
            encoding = data["encoding"] if "encoding" in data else "plain"  # noqa: SIM401
            if encoding not in ENCODINGS:
                raise ValueError(f"there is no encoding {encoding!r}")
            columns = data["columns"]
            if type(columns) is not list or not set(map(type, columns)) <= {dict}:
                raise ValueError("its columns are none")
            packed = ["packed" in members for members in columns]
            if ("lists" in data) != (any(packed) and not all(packed)):
                raise ValueError("lists are not where plain columns are beside encoded ones")
            return cls(
                rows=_integer(data["rows"]),
                columns=LazySequence(len(columns), column),
                metadata=tuple((_extent([o, length]), _checksum(crc)) for o, length, crc in data["metadata"]),
                encoding=encoding,
                lists=_extent(data["lists"]) if "lists" in data else None,
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptionError(f"its buffer layout cannot be read: {error!r}", path) from error


def _column_to_json(column: ColumnLayout) -> dict[str, Any]:
    data: dict[str, Any] = {"values": [column.values.offset, column.values.length]}
    if column.validity is not None:
        data["validity"] = [column.validity.offset, column.validity.length]
    if column.offsets is not None:
        data["offsets"] = [column.offsets.offset, column.offsets.length]
    if column.dictionary is not None:
        d = column.dictionary
        data["dictionary"] = {
            "size": d.size,
            "values": [d.values.offset, d.values.length],
            "values_crc": d.values_crc,
            "offsets": None if d.offsets is None else [d.offsets.offset, d.offsets.length],
            "offsets_crc": d.offsets_crc,
        }
    if column.encoding is not None:
        e = column.encoding
        data["packed"] = {
            "divisor": e.divisor,
            "origin": e.origin,
            "has_nulls": e.has_nulls,
            "cells": [e.cells.offset, e.cells.length],
            "lists": None if e.lists is None else [e.lists.offset, e.lists.length],
            "plain_bytes": e.plain_bytes,
        }
        if e.symbols is not None:
            data["packed"]["symbols"] = base64.b64encode(e.symbols).decode()
    return data


def _column_from_json(data: Mapping[str, Any]) -> ColumnLayout:
    dictionary = None
    if "dictionary" in data:
        d = data["dictionary"]
        dictionary = DictionaryLayout(
            size=_integer(d["size"]),
            offsets=None if d["offsets"] is None else _extent(d["offsets"]),
            values=_extent(d["values"]),
            offsets_crc=_checksum(d["offsets_crc"]),
            values_crc=_checksum(d["values_crc"]),
        )
    return ColumnLayout(
        validity=_extent(data["validity"]) if "validity" in data else None,
        offsets=_extent(data["offsets"]) if "offsets" in data else None,
        values=_extent(data["values"]),
        dictionary=dictionary,
        encoding=_packed_from_json(data["packed"]) if "packed" in data else None,
    )


def _packed_from_json(data: Mapping[str, Any]) -> PackedLayout:
    divisor, origin = _integer(data["divisor"]), data["origin"]
    if not 1 <= divisor < 1 << 63 or not _integer(origin) < 1 << 64:
        raise ValueError(f"divisor {divisor!r} and origin {origin!r} cannot be")
    if type(data["has_nulls"]) is not bool:
        raise ValueError(f"{data['has_nulls']!r} is not a truth value")
    return PackedLayout(
        divisor=divisor,
        origin=origin,
        has_nulls=data["has_nulls"],
        cells=_extent(data["cells"]),
        lists=None if data["lists"] is None else _extent(data["lists"]),
        plain_bytes=_integer(data["plain_bytes"]),
        symbols=_symbols(data["symbols"]) if "symbols" in data else None,
    )


def _symbols(text: Any) -> bytes:
    """A table of symbols, in which lengths go with bytes."""
    stored = base64.b64decode(text, validate=True)
    lengths = stored[1 : 1 + stored[0]] if stored else b""
    fits = bool(stored) and len(lengths) == stored[0] and all(1 <= n <= MOST_SYMBOL_BYTES for n in lengths)
    if not fits or stored[0] > MOST_SYMBOLS or len(stored) != 1 + len(lengths) + sum(lengths):
        raise ValueError("its table of symbols cannot be")
    return stored


def _checksum(value: Any) -> int:
    if _integer(value) >= 1 << 32:
        raise ValueError(f"{value!r} is not a CRC-32C")
    return int(value)


def _extent(pair: list[Any]) -> Extent:
    offset, length = pair
    return Extent(_integer(offset), _integer(length))


def _integer(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a size")
    return value
