"""What a query needed of a column, in bytes, by the definition of DESIGN (docs/profile.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.operators.scan.chunks import Piece
from bamquery.storage.fragments.fragment import Fragment


def plain_bytes(fragment: Fragment, column: str, rows: int, string_bytes: int = 0) -> int:
    """Bytes of `rows` rows of a column in plain Arrow: the least that looking at them can take.

    Values, 1/8 byte a row where the fragment's column has nulls, and for strings one offset a row and
    the `string_bytes` themselves. Of a dictionary column the indexes, whatever a device makes of it.
    """
    return fragment.sizes(column).plain_bytes(rows, string_bytes)


def bytes_of_pieces(pieces: Sequence[Piece], column: str, counts: NDArray[np.int64]) -> int:
    """The same for so many rows of each piece, of a column that has no strings."""
    fragments = [piece.fragment for piece in pieces]
    sizes = [fragment.sizes(column) for fragment in fragments]
    return plain_bytes_of(counts, sizes[0].bits, np.array([one.has_nulls for one in sizes]))


def plain_bytes_of(counts: NDArray[np.int64], bits: int, nullable: NDArray[np.bool_]) -> int:
    """The same of values of so many bits, where it is known which pieces' fragments have nulls."""
    return int((-(-counts * bits // 8)).sum() + (-(-counts[nullable] // 8)).sum())


def whole_piece_bytes(piece: Piece, column: str) -> int:
    """Bytes of all rows [begin, end), also those that zone maps made it unnecessary to read.

    String bytes of pruned vectors are not known one by one; each row is taken to have its share of the
    fragment's, so that the pieces of a whole fragment add up exactly.
    """
    fragment = piece.fragment
    sizes = fragment.sizes(column)
    strings = piece.end * sizes.strings // fragment.rows - piece.begin * sizes.strings // fragment.rows
    return sizes.plain_bytes(piece.end - piece.begin, strings)
