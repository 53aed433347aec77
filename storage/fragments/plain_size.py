"""How many bytes a column takes as plain Arrow, however it is stored, and as it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from bamquery.storage.format.layout import ColumnLayout
from bamquery.storage.format.storable_types import is_string_like, value_bits

if TYPE_CHECKING:
    from bamquery.storage.fragments.fragment import Fragment


@dataclass(frozen=True, slots=True)
class ColumnSizes:
    """What one column of a fragment weighs; found once, as each chunk of each scan asks.

    Attributes:
        has_strings: its values have offsets.
        has_nulls: in this fragment.
        has_dictionary: what is stored are places in one.
        bits: of one value: of the place for dictionaries, of the offset for strings.
        strings: bytes of all strings, offsets aside; of dictionaries none, whose rows share them.
        plain: bytes of the column as it lies in memory, dictionary aside.
        stored: bytes of the column as its file holds it, dictionary and parameters aside.
    """

    has_strings: bool
    has_nulls: bool
    has_dictionary: bool
    bits: int
    strings: int
    plain: int
    stored: int

    @staticmethod
    def of_column(kind: pa.DataType, layout: ColumnLayout, rows: int) -> ColumnSizes:
        """Those of a column of that type and so many rows."""
        has_strings, bits = is_string_like(kind), value_bits(kind)
        strings = 0
        if has_strings:
            strings = layout.values.length if layout.encoding is None else layout.encoding.plain_bytes
        plain = -(-(rows + has_strings) * bits // 8) + strings + (-(-rows // 8) if layout.has_nulls else 0)
        stored = sum(extent.length for extent in layout.buffers)
        has_dictionary = layout.dictionary is not None
        return ColumnSizes(has_strings, layout.has_nulls, has_dictionary, bits, strings, plain, stored)

    def plain_bytes(self, rows: int, string_bytes: int = 0) -> int:
        """Bytes of so many rows in plain Arrow, whose strings have so many: the least that a look takes."""
        nulls = -(-rows // 8) if self.has_nulls else 0
        return nulls - (-rows * self.bits // 8) + (string_bytes if self.has_strings else 0)


def string_bytes(fragment: Fragment, index: int) -> int:
    """Bytes of all strings of a column, offsets aside; of dictionaries none, whose rows share them."""
    return fragment.sizes(fragment.schema.field(index).name).strings


def column_bytes(fragment: Fragment, index: int) -> int:
    """Bytes of a column as it lies in memory, dictionary aside."""
    return fragment.sizes(fragment.schema.field(index).name).plain


def stored_bytes(fragment: Fragment, index: int) -> int:
    """Bytes of a column as its file holds it, dictionary and parameters aside."""
    return fragment.sizes(fragment.schema.field(index).name).stored
