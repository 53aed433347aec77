"""How a fragment stores a column, found once: each chunk of each scan asks."""

from __future__ import annotations

from dataclasses import dataclass

from bamquery.storage.encodings.encoding import StoredColumn
from bamquery.storage.encodings.fsst.column import FsstColumn
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.fragments.plain_size import ColumnSizes


@dataclass(frozen=True, slots=True, eq=False)
class ColumnKind:
    """What readers ask of one column of a fragment.

    Attributes:
        packed: the column, if its vectors are packed.
        is_encoded: whether vectors are decoded before they are values.
        is_coded: whether what is stored are places in a dictionary.
        is_number: whether packed vectors are numbers, and no places.
        sizes: what it weighs.
    """

    packed: PackedColumn | None
    is_encoded: bool
    is_coded: bool
    is_number: bool
    sizes: ColumnSizes

    @classmethod
    def of_column(cls, stored: StoredColumn, sizes: ColumnSizes) -> ColumnKind:
        """Of a column that is stored so."""
        packed = stored if isinstance(stored, PackedColumn) else None
        is_coded = sizes.has_dictionary
        is_encoded = packed is not None or isinstance(stored, FsstColumn)
        return cls(packed, is_encoded, is_coded, packed is not None and not is_coded, sizes)
