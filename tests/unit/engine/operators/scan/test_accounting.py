"""Bytes needed, by the definition: what looking at the values takes in plain Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.operators.scan.accounting import plain_bytes, whole_piece_bytes
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.storage.fragments.fragment import Fragment
from tests.stored import stored

ROWS = 5000
NOBODY = np.empty(0, np.int64)


@pytest.fixture(scope="module")
def fragment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fragment]:
    half = [i % 2 == 0 for i in range(ROWS)]
    table = pa.table(
        {
            "int": pa.array(range(ROWS), pa.int64()),
            "holes": pa.array([0.5 if keep else None for keep in half]),
            "flag": pa.array(half),
            "text": pa.array(["x" * (i % 10) for i in range(ROWS)], pa.large_string()),
            "word": pa.array(["red", "blue"] * (ROWS // 2), pa.large_string()).dictionary_encode(),
            "exact": pa.array([None, *range(1, ROWS)], pa.decimal128(20, 2)),
        }
    )
    with stored(tmp_path_factory.mktemp("accounting") / "db", table) as snapshot:
        yield snapshot.fragments[0]


@pytest.mark.parametrize(
    ("column", "rows", "needed"),
    [
        ("int", ROWS, 40_000),
        ("int", 0, 0),
        ("holes", ROWS, 40_000 + 625),
        ("holes", 3, 24 + 1),
        ("flag", ROWS, 625),
        ("flag", 1, 1),
        ("word", 10, 40),
        ("exact", 8, 128 + 1),
    ],
)
def test_fixed_widths(fragment: Fragment, column: str, rows: int, needed: int) -> None:
    assert plain_bytes(fragment, column, rows) == needed


def test_strings(fragment: Fragment) -> None:
    assert plain_bytes(fragment, "text", 10, string_bytes=71) == 151


@pytest.mark.parametrize("column", ["int", "holes", "flag", "text", "word", "exact"])
def test_the_pieces_of_a_fragment_add_up(fragment: Fragment, column: str) -> None:
    edges = (0, 1024, 3072, ROWS)
    pieces = [Piece(fragment, begin, end, NOBODY) for begin, end in pairwise(edges)]
    strings = 4500 * 5 if column == "text" else 0
    whole = plain_bytes(fragment, column, ROWS, strings)
    assert sum(whole_piece_bytes(piece, column) for piece in pieces) == whole
