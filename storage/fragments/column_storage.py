"""What a column of a fragment takes, and how it is stored: for EXPLAIN and `bamquery columns`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.storage.encodings.fsst.column import FsstColumn
from bamquery.storage.encodings.fsst.parameters import BYTES, SYMBOLS
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.encodings.packed.parameters import (
    DECIMAL,
    FLOAT32,
    INTEGER,
    RAW,
    UNSCALED,
    forms,
)
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.plain_size import column_bytes

_FORMS: Final[Mapping[int, str]] = MappingProxyType(
    {INTEGER: "integer", UNSCALED: "integer", DECIMAL: "decimal", FLOAT32: "float32", RAW: "raw"}
)
_CONSTANT: Final = "constant"
_OF_STRINGS: Final[Mapping[int, str]] = MappingProxyType({SYMBOLS: "symbols", BYTES: "bytes"})


@dataclass(frozen=True, slots=True)
class ColumnStorage:
    """A column of one fragment, or of several.

    Attributes:
        encodings: `plain`, `packed`, `fsst`, `dictionary` (packed codes) and `plain dictionary` (plain ones),
            by fragments.
        rows: of these.
        stored_bytes: values, validity, offsets, dictionaries, symbols, and parameters of encoded vectors;
            statistics and checksums aside.
        plain_bytes: the same values as plain Arrow has them in memory, dictionaries included.
    """

    encodings: Counter[str]
    rows: int
    stored_bytes: int
    plain_bytes: int

    @property
    def encoding(self) -> str:
        """All encodings, that of most fragments first; `-` where there is no fragment."""
        return ", ".join(name for name, _ in self.encodings.most_common()) or "-"

    @property
    def bits(self) -> float | None:
        """Bits that a value takes; None where there is none."""
        return 8 * self.stored_bytes / self.rows if self.rows else None

    @property
    def plain_bits(self) -> float | None:
        """Bits that a value takes in memory; None where there is none."""
        return 8 * self.plain_bytes / self.rows if self.rows else None


def column_storage(fragment: Fragment, column: str) -> ColumnStorage:
    """Of one column, by its exact name; from the layout alone, nothing is read."""
    index = fragment.column_index(column)
    layout = fragment.layout.columns[index]
    shared = 0 if layout.dictionary is None else layout.dictionary.values.length
    if layout.dictionary is not None and layout.dictionary.offsets is not None:
        shared += layout.dictionary.offsets.length
    stored = sum(extent.length for extent in layout.buffers)
    if layout.encoding is None:
        encoding = "plain" if layout.dictionary is None else "plain dictionary"
    else:
        symbols = layout.encoding.symbols
        stored += layout.encoding.parameter_bytes * fragment.vector_count + len(symbols or b"")
        encoding = "fsst" if symbols is not None else "packed"
        encoding = encoding if layout.dictionary is None else "dictionary"
    plain = column_bytes(fragment, index)
    if pa.types.is_dictionary(fragment.schema.field(index).type):
        plain += shared
    return ColumnStorage(Counter({encoding: 1}), fragment.rows, stored, plain)


def table_column_storage(fragments: Iterable[Fragment], column: str) -> ColumnStorage:
    """The same of all fragments that have the column: those older than it store nothing of it."""
    encodings: Counter[str] = Counter()
    rows = stored = plain = 0
    for fragment in fragments:
        if column in fragment.schema.names:
            found = column_storage(fragment, column)
            encodings += found.encodings
            rows += found.rows
            stored += found.stored_bytes
            plain += found.plain_bytes
    return ColumnStorage(encodings, rows, stored, plain)


def vector_forms(fragment: Fragment, column: str) -> Counter[str]:
    """How many vectors are stored in which form; none where the column is plain.

    Raises:
        CorruptionError, StorageError: the parameters cannot be read.
    """
    stored = fragment.column(column)
    if isinstance(stored, FsstColumn):
        return Counter(_OF_STRINGS[form] for form in stored.parameters["form"].tolist())
    if not isinstance(stored, PackedColumn):
        return Counter()
    parameters = stored.parameters
    return Counter(
        _CONSTANT if not bits else _FORMS[form]
        for form, bits in zip(forms(parameters).tolist(), parameters["bits"].tolist(), strict=True)
    )
