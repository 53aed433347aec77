"""Where the bytes of a fragment are: vectors, extents and what the vectors file records about file one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bamquery.errors import CorruptionError

VECTOR_ROWS: Final = 1024
"""Rows of a vector: vector v holds rows [1024 v, 1024 (v + 1)) of its fragment."""

ALIGNMENT: Final = 4096
"""Every buffer of file one starts at a multiple of this many bytes, so a row's block is arithmetic."""


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
class ColumnLayout:
    """The buffers of one column; `validity` is None where no value is null, `offsets` but for strings."""

    validity: Extent | None
    offsets: Extent | None
    values: Extent
    dictionary: DictionaryLayout | None = None

    @property
    def extents(self) -> tuple[Extent, ...]:
        """All buffers that exist, dictionary included."""
        own = (self.validity, self.offsets, self.values)
        theirs = (self.dictionary.offsets, self.dictionary.values) if self.dictionary else ()
        return tuple(extent for extent in own + theirs if extent is not None)


@dataclass(frozen=True, slots=True)
class FragmentLayout:
    """File one as a whole: buffers, runs of IPC metadata, and zeros between them."""

    rows: int
    columns: tuple[ColumnLayout, ...]
    metadata: tuple[tuple[Extent, int], ...]
    """Runs that hold IPC metadata, with the CRC-32C of each; the last one ends the file."""

    def to_json(self) -> str:
        """Compact text, for the vectors file's schema metadata."""
        return json.dumps(
            {
                "rows": self.rows,
                "columns": [_column_to_json(column) for column in self.columns],
                "metadata": [[extent.offset, extent.length, crc] for extent, crc in self.metadata],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str | bytes, path: Path) -> FragmentLayout:
        """Parse what `to_json` made.

        Raises:
            CorruptionError: the text is not such a layout; names `path`.
        """
        try:
            data = json.loads(text)
            return cls(
                rows=_integer(data["rows"]),
                columns=tuple(_column_from_json(column) for column in data["columns"]),
                metadata=tuple((_extent([o, length]), _integer(crc)) for o, length, crc in data["metadata"]),
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
    return data


def _column_from_json(data: Mapping[str, Any]) -> ColumnLayout:
    dictionary = None
    if "dictionary" in data:
        d = data["dictionary"]
        dictionary = DictionaryLayout(
            size=_integer(d["size"]),
            offsets=None if d["offsets"] is None else _extent(d["offsets"]),
            values=_extent(d["values"]),
            offsets_crc=_integer(d["offsets_crc"]),
            values_crc=_integer(d["values_crc"]),
        )
    return ColumnLayout(
        validity=_extent(data["validity"]) if "validity" in data else None,
        offsets=_extent(data["offsets"]) if "offsets" in data else None,
        values=_extent(data["values"]),
        dictionary=dictionary,
    )


def _extent(pair: list[Any]) -> Extent:
    offset, length = pair
    return Extent(_integer(offset), _integer(length))


def _integer(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a size")
    return value
