"""Writes fragments: two Arrow files from a stream of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from bamquery.errors import CorruptionError

if TYPE_CHECKING:
    from bamquery.storage.filesystem import FileSystem

_ID: Final = re.compile(r"[0-9A-Za-z_-]{1,128}")


@dataclass(frozen=True, slots=True)
class FragmentEntry:
    """What a manifest records of a fragment; enough to find every change to its files."""

    id: str
    rows: int
    data_bytes: int
    """Size of `<id>.arrow`."""
    vectors_bytes: int
    """Size of `<id>.vectors.arrow`."""
    vectors_crc: int
    """CRC-32C of the whole of `<id>.vectors.arrow`, which in turn holds those of `<id>.arrow`."""

    @property
    def data_name(self) -> str:
        """File one: the columns."""
        return f"{self.id}.arrow"

    @property
    def vectors_name(self) -> str:
        """File two: zone map, checksums and layout."""
        return f"{self.id}.vectors.arrow"

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> FragmentEntry:
        """What `to_json` made.

        Raises:
            CorruptionError: anything else.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(data, Mapping) or set(data) != names:
            raise CorruptionError(f"a fragment's entry must have exactly the keys {sorted(names)}")
        if not isinstance(data["id"], str) or _ID.fullmatch(data["id"]) is None:
            raise CorruptionError(f"{data['id']!r} is not a fragment id")
        for name in names - {"id"}:
            value = data[name]
            if type(value) is not int or not 0 <= value < (1 << 32 if name == "vectors_crc" else 1 << 63):
                raise CorruptionError(f"fragment {data['id']}: {name} cannot be {value!r}")
        return cls(**data)


class RowSource(Protocol):
    """What a fragment is made of."""

    @property
    def rows(self) -> int:
        """Exact number of rows."""
        ...

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """Chunks of one column in row order, of any length, together `rows` long.

        Called once per column, in any order; twice for dictionary columns, with the same values.
        """
        ...


@dataclass(frozen=True)
class BatchRows:
    """Record batches in memory, as a source of rows."""

    batches: Sequence[pa.RecordBatch]

    @property
    def rows(self) -> int:
        """Rows of all batches."""
        return sum(batch.num_rows for batch in self.batches)

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """One chunk a batch."""
        return (batch.column(index) for batch in self.batches)


def write_fragment(
    filesystem: FileSystem,
    folder: Path,
    fragment_id: str,
    schema: pa.Schema,
    source: RowSource,
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> FragmentEntry:
    """Write and sync `<id>.arrow` and `<id>.vectors.arrow` in `folder`; the folder itself is not synced.

    Memory is that of one column's chunk, its bitmap and statistics, never of the whole fragment. `cancelled`
    is asked between chunks.

    Raises:
        StorageError: the disk is full or fails, a column of the source does not fit the schema, or the write
            was cancelled. Files written so far stay for the caller to remove.
    """
    raise NotImplementedError
