"""What a query needed of a column, in bytes, by the definition of DESIGN (docs/profile.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.operators.scan.chunks import Piece
from bamquery.storage.format.storable_types import is_string_like, value_bits
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.plain_size import string_bytes


def plain_bytes(fragment: Fragment, column: str, rows: int, string_bytes: int = 0) -> int:
    """Bytes of `rows` rows of a column in plain Arrow: the least that looking at them can take.

    Values, 1/8 byte a row where the fragment's column has nulls, and for strings one offset a row and
    the `string_bytes` themselves. Of a dictionary column the indexes, whatever a device makes of it.
    """
    position = fragment.column_index(column)
    kind = fragment.schema.field(position).type
    nulls = _bytes(rows) if fragment.layout.columns[position].has_nulls else 0
    return nulls + _bytes(rows * value_bits(kind)) + (string_bytes if is_string_like(kind) else 0)


def bytes_of_pieces(pieces: Sequence[Piece], column: str, counts: NDArray[np.int64]) -> int:
    """The same for so many rows of each piece, of a column that has no strings."""
    fragments = [piece.fragment for piece in pieces]
    position = fragments[0].column_index(column)
    bits = value_bits(fragments[0].schema.field(position).type)
    nullable = np.array([f.layout.columns[position].has_nulls for f in fragments])
    return plain_bytes_of(counts, bits, nullable)


def plain_bytes_of(counts: NDArray[np.int64], bits: int, nullable: NDArray[np.bool_]) -> int:
    """The same of values of so many bits, where it is known which pieces' fragments have nulls."""
    return int((-(-counts * bits // 8)).sum() + (-(-counts[nullable] // 8)).sum())


def whole_piece_bytes(piece: Piece, column: str) -> int:
    """Bytes of all rows [begin, end), also those that zone maps made it unnecessary to read.

    String bytes of pruned vectors are not known one by one; each row is taken to have its share of the
    fragment's, so that the pieces of a whole fragment add up exactly.
    """
    fragment = piece.fragment
    whole = string_bytes(fragment, fragment.column_index(column))
    strings = piece.end * whole // fragment.rows - piece.begin * whole // fragment.rows
    return plain_bytes(fragment, column, piece.end - piece.begin, strings)


def _bytes(bits: int) -> int:
    return -(-bits // 8)
