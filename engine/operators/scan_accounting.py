"""What a query needed of a column, in bytes, by the definition of DESIGN (docs/profile.md)."""

from __future__ import annotations

import pyarrow as pa

from bamquery.engine.operators.scan_chunks import Piece
from bamquery.storage.fragment import Fragment

_OFFSET_BYTES = 8


def plain_bytes(fragment: Fragment, column: str, rows: int, string_bytes: int = 0) -> int:
    """Bytes of `rows` rows of a column in plain Arrow: the least that looking at them can take.

    Values, 1/8 byte a row where the fragment's column has nulls, and for strings one offset a row and
    the `string_bytes` themselves. Of a dictionary column the indexes.
    """
    position = fragment.schema.get_field_index(column)
    kind = fragment.schema.field(position).type
    layout = fragment.layout.columns[position]
    bits = 0 if layout.validity is None else rows
    if layout.offsets is not None:
        return _bytes(bits) + rows * _OFFSET_BYTES + string_bytes
    width = (kind.index_type if pa.types.is_dictionary(kind) else kind).bit_width
    return _bytes(bits) + _bytes(rows * width)


def whole_piece_bytes(piece: Piece, column: str) -> int:
    """Bytes of all rows [begin, end), also those that zone maps made it unnecessary to read.

    String bytes of pruned vectors are not known one by one; each row is taken to have its share of the
    fragment's, so that the pieces of a whole fragment add up exactly.
    """
    fragment = piece.fragment
    layout = fragment.layout.columns[fragment.schema.get_field_index(column)]
    strings = 0
    if layout.offsets is not None:
        strings = (
            piece.end * layout.values.length // fragment.rows
            - piece.begin * layout.values.length // fragment.rows
        )
    return plain_bytes(fragment, column, piece.end - piece.begin, strings)


def _bytes(bits: int) -> int:
    return -(-bits // 8)
