"""What a row of a scan's columns weighs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bamquery.storage.format.storable_types import is_string_like, value_bits
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.plain_size import column_bytes


@dataclass(frozen=True)
class RowBytes:
    """Of a row of some columns' widest, where it is widest.

    Attributes:
        plain: as a value.
        stored: as it is stored.
    """

    plain: float
    stored: float

    @classmethod
    def of_column(cls, fragments: Sequence[Fragment], name: str) -> RowBytes:
        """Of one column of fragments of one schema."""
        position = fragments[0].column_index(name)
        kind = fragments[0].schema.field(position).type
        layouts = [(fragment, fragment.layout.columns[position]) for fragment in fragments]
        if is_string_like(kind):
            plain = [column_bytes(fragment, position) / max(fragment.rows, 1) for fragment, _ in layouts]
        else:
            plain = [value_bits(kind) / 8]
        stored = [
            layout.values.length / max(fragment.rows, 1)
            for fragment, layout in layouts
            if layout.encoding is not None
        ]
        if len(stored) < len(layouts):
            stored += plain
        return cls(max(plain), max(*stored, 1 / 64))

    @classmethod
    def widest(cls, columns: Iterable[RowBytes]) -> RowBytes:
        """Of all of them; of no columns a byte."""
        found = list(columns)
        return cls(
            max((column.plain for column in found), default=1),
            max((column.stored for column in found), default=1),
        )
