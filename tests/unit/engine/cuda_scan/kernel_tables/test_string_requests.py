"""Which runs of bytes hold the strings of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.operators.scan.chunks import Piece
from bamquery.storage.format.layout import Extent
from bamquery.storage.tables.snapshot import Snapshot
from tests.stored import stored


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    table = pa.table({"a": np.arange(10_000)})
    with stored(tmp_path_factory.mktemp("t") / "db", table, (4000,)) as found:
        yield found


@pytest.fixture
def tables(scan_modules: None) -> Any:
    from bamquery.engine.cuda.scan.kernel_tables import string_requests as string_tables

    return string_tables


@pytest.fixture
def rows(scan_modules: None, snapshot: Snapshot) -> Any:
    """Vectors 0, 1 and 3 of the first fragment, 1, 2 and 5 (its last) of the second."""
    from bamquery.engine.cuda.scan.kernel_tables.requests import ChunkRows

    chosen = ([0, 1, 3], [1, 2, 5])
    return ChunkRows.from_pieces(
        [
            Piece(fragment, 0, fragment.rows, np.array(vectors, np.int64))
            for fragment, vectors in zip(snapshot.fragments, chosen, strict=True)
        ]
    )


def test_offsets_come_with_the_one_behind(tables: Any, rows: Any) -> None:
    extents = [Extent(4096, 4001 * 8), Extent(8192, 6001 * 8)]
    runs = tables.offset_runs(rows, extents)
    assert runs.requests["nsid"].tolist() == [0, 0, 1, 1]
    assert runs.requests["source"].tolist() == [4096, 4096 + 3 * 8192, 8192 + 8192, 8192 + 5 * 8192]
    assert runs.requests["bytes"].tolist() == [2 * 8192 + 8, 929 * 8, 2 * 8192 + 8, 881 * 8]
    targets = [0, 2 * 8192 + 16, 3 * 8192 + 32, 5 * 8192 + 48]
    assert runs.requests["target"].tolist() == targets
    places = [0, 8192, targets[1], targets[2], targets[2] + 8192, targets[3]]
    assert (runs.places * tables.GRAIN).tolist() == places
    assert runs.size == 6 * 8192 + 4 * 16


def test_offsets_of_some_vectors(tables: Any, rows: Any) -> None:
    extents = [Extent(4096, 4001 * 8), Extent(8192, 6001 * 8)]
    wanted = np.array([False, True, True, False, False, True])
    runs = tables.offset_runs(rows, extents, wanted)
    assert runs.requests["source"].tolist() == [4096 + 8192, 4096 + 3 * 8192, 8192 + 5 * 8192]
    assert runs.size == 3 * 8192 + 3 * 16
    assert not len(tables.offset_runs(rows, extents, np.zeros(6, np.bool_)).requests)


def test_bytes_of_neighbours_make_one_run(tables: Any, rows: Any) -> None:
    extents = [Extent(4096, 1000), Extent(8192, 5000)]
    ranges = np.array([[3, 40], [40, 90], [95, 95], [7, 30], [31, 31], [31, 100]])
    runs = tables.byte_runs(rows, extents, ranges)
    assert runs.requests["source"].tolist() == [4096, 8192, 8192 + 16]
    assert runs.requests["bytes"].tolist() == [90, 30, 84]
    assert runs.requests["target"].tolist() == [0, 96, 128]
    assert runs.size == 128 + 96
    for vector, target in ((0, 3), (1, 40), (3, 96 + 7), (5, 128 + 15)):
        begin = int(ranges[vector, 0])
        assert (int(runs.places[vector]) + begin) % (1 << 64) == target


def test_bytes_that_come_before_those_of_a_vector_before(tables: Any, rows: Any) -> None:
    extents = [Extent(4096, 1000), Extent(8192, 5000)]
    ranges = np.array([[3, 40], [0, 0], [39, 50], [7, 30], [0, 0], [0, 0]])
    assert tables.byte_runs(rows, extents, ranges) == 2


def test_runs_longer_than_a_request(tables: Any, rows: Any) -> None:
    extents = [Extent(4096, 1 << 40), Extent(8192, 1 << 40)]
    ranges = np.array([[5, 3 << 30], [3 << 30, 9 << 30], [0, 0], [0, 0], [0, 0], [1, 5 << 30]])
    runs = tables.byte_runs(rows, extents, ranges)
    first = runs.requests[runs.requests["nsid"] == 0]
    assert int(first["bytes"].sum(dtype=np.int64)) == (9 << 30)
    assert int(first["bytes"].max()) <= 1 << 30
    assert (first["source"] - first["target"] == 4096).all()
    assert runs.size >= 14 << 30
    assert (runs.requests["target"] % 16 == 0).all()
