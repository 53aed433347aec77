"""Where rows are, what is requested for them, and how it is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery import _native
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.storage.format.layout import Extent
from bamquery.storage.fragments.stored_buffers import stored_buffers
from bamquery.storage.tables.snapshot import Snapshot
from tests.stored import stored

ROWS = 10_000


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    nulls = np.zeros(ROWS, np.bool_)
    nulls[3000:3010] = True
    nulls[7168:9216] = True
    table = pa.table({"a": pa.array(np.arange(ROWS), mask=nulls), "b": pa.array(np.arange(ROWS) % 2 == 0)})
    with stored(tmp_path_factory.mktemp("t") / "db", table, (4000,)) as found:
        yield found


@pytest.fixture
def tables(scan_modules: None) -> Any:
    from bamquery.engine.cuda.scan.kernel_tables import requests as chunk_tables

    return chunk_tables


def pieces(snapshot: Snapshot, *vectors: list[int]) -> list[Piece]:
    return [
        Piece(fragment, 0, fragment.rows, np.array(chosen, np.int64))
        for fragment, chosen in zip(snapshot.fragments, vectors, strict=True)
    ]


def test_rows_of_pieces(tables: Any, snapshot: Snapshot) -> None:
    rows = tables.ChunkRows.from_pieces(pieces(snapshot, [0, 2, 3], [1, 5]))
    assert rows.firsts.tolist() == [0, 3, 5]
    places = [rows.place(vector) for vector in range(rows.count)]
    assert [number for _, number in places] == [0, 2, 3, 1, 5]
    assert [fragment for fragment, _ in places] == [snapshot.fragments[i] for i in (0, 0, 0, 1, 1)]
    assert rows.rows == sum([1024, 1024, 4000 - 3072, 1024, 6000 - 5120])
    assert rows.runs == 4
    assert not rows.dense


def test_pieces_that_were_pruned_whole_are_left_out(tables: Any, snapshot: Snapshot) -> None:
    rows = tables.ChunkRows.from_pieces(pieces(snapshot, [], [0]))
    assert len(rows.pieces) == 1
    assert rows.dense


def test_requests_are_runs_of_neighbours(tables: Any, snapshot: Snapshot) -> None:
    rows = tables.ChunkRows.from_pieces(pieces(snapshot, [0, 1, 3], [1, 2, 5]))
    extents = [Extent(4096, 4000 * 8), Extent(8192, 6000 * 8)]
    requests = tables.stream_requests(rows, extents, 64)
    assert requests["nsid"].tolist() == [0, 0, 1, 1]
    assert requests["source"].tolist() == [4096, 4096 + 3 * 8192, 8192 + 8192, 8192 + 5 * 8192]
    assert requests["target"].tolist() == [0, 2 * 8192, 3 * 8192, 5 * 8192]
    assert requests["bytes"].tolist() == [16384, 928 * 8, 16384, 880 * 8]
    wanted = np.array([False, True, True, False, False, True])
    assert tables.stream_requests(rows, extents, 64, wanted)["target"].tolist() == [8192, 16384, 5 * 8192]


@pytest.mark.parametrize("limit", [4096, 16384, 1 << 20])
def test_cut_requests_cover_the_same_bytes(tables: Any, limit: int) -> None:
    requests = np.zeros(3, tables.REQUEST)
    requests["source"] = [100, 50_000, 200_000]
    requests["target"] = [0, 10_000, 90_000]
    requests["bytes"] = [1, 70_000, 8192]
    requests["nsid"] = [0, 1, 2]
    cut = tables.cut_requests(requests, limit)
    assert (cut["source"] // limit == (cut["source"] + cut["bytes"] - 1) // limit).all()
    for request in requests:
        mine = cut[cut["nsid"] == request["nsid"]]
        assert mine["bytes"].sum() == request["bytes"]
        assert (mine["source"] - mine["target"] == request["source"] - request["target"]).all()
        assert mine["source"][0] == request["source"]


def test_counts_are_those_of_block_readers(tables: Any, snapshot: Snapshot) -> None:
    rows = tables.ChunkRows.from_pieces(pieces(snapshot, [0, 1, 3], [1, 2, 5]))
    extents = [Extent(4096, 4000 // 8), Extent(8192, 6000 // 8)]
    requests = tables.stream_requests(rows, extents, 1)
    first = _native.count_range_blocks(np.array([4096, 4480]), np.array([256, 116]), 512)
    second = _native.count_range_blocks(np.array([8192 + 128, 8192 + 640]), np.array([256, 110]), 512)
    expected = (first[0] + second[0], first[1] + second[1])
    assert tables.count_requests(requests, 512) == expected


def test_null_states(tables: Any, snapshot: Snapshot) -> None:
    rows = tables.ChunkRows.from_pieces(pieces(snapshot, [0, 2], [3, 4, 5]))
    buffers = [stored_buffers(piece.fragment, "a") for piece in rows.pieces]
    assert tables.null_states([piece.vectors for piece in rows.pieces], buffers).tolist() == [0, 1, 1, 2, 1]
    rows = tables.ChunkRows.from_pieces(pieces(snapshot, [0], [0]))
    assert tables.null_states([piece.vectors for piece in rows.pieces], buffers) is None
