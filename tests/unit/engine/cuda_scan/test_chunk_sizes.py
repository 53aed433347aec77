"""Chunks cover all rows once, in order, and are small at both ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bamquery.storage.tables.snapshot import Snapshot
from tests.stored import stored

ROWS = 40_000
CUTS = (1, 9_000, 9_216, 30_000)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    table = pa.table({"a": pa.array(np.arange(ROWS))})
    with stored(tmp_path_factory.mktemp("cuts") / "db", table, CUTS) as found:
        yield found


def listed(snapshot: Snapshot, numbers: Any) -> Any:
    firsts = np.concatenate([[0], np.cumsum([f.vector_count for f in snapshot.fragments])]).astype(np.uint32)
    numbers_within = np.concatenate([np.arange(f.vector_count) for f in snapshot.fragments])
    resident = SimpleNamespace(fragments=tuple(snapshot.fragments), firsts=firsts, numbers=numbers_within)
    count = int(firsts[-1]) if numbers is None else len(numbers)
    return SimpleNamespace(resident=resident, numbers=numbers, count=count)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kept=st.one_of(st.none(), st.sets(st.integers(0, 42))),
    full=st.integers(1, 50),
    first=st.integers(1, 50),
)
def test_chunks_cover_every_row_once(
    scan_modules: None, snapshot: Snapshot, kept: set[int] | None, full: int, first: int
) -> None:
    from bamquery.engine.cuda.scan.chunk.chunk_sizes import ChunkSizes, cut_chunks

    total = sum(fragment.vector_count for fragment in snapshot.fragments)
    numbers = None if kept is None else np.array(sorted(n for n in kept if n < total), np.uint32)
    chunks = list(cut_chunks(listed(snapshot, numbers), ChunkSizes(full, first)))
    covered = [(piece.fragment, piece.begin, piece.end) for c in chunks for piece in c.chunk.pieces]
    for fragment in snapshot.fragments:
        mine = [(begin, end) for found, begin, end in covered if found is fragment]
        assert mine[0][0] == 0
        assert mine[-1][1] == fragment.rows
        assert all(one[1] == other[0] for one, other in pairwise(mine))
    firsts = {
        id(f): int(n)
        for f, n in zip(snapshot.fragments, listed(snapshot, None).resident.firsts, strict=False)
    }
    found = [firsts[id(p.fragment)] + int(v) for c in chunks for p in c.chunk.pieces for v in p.vectors]
    assert found == (list(range(total)) if numbers is None else numbers.tolist())
    place = 0
    for chunk in chunks:
        assert chunk.first == place
        place += sum(len(piece.vectors) for piece in chunk.chunk.pieces)
        assert [snapshot.fragments[n] for n in chunk.fragments] == [p.fragment for p in chunk.chunk.pieces]


def test_sizes_grow_and_the_last_is_small(scan_modules: None) -> None:
    from bamquery.engine.cuda.scan.chunk.chunk_sizes import ChunkSizes

    sizes, left, found = ChunkSizes(32, 4), 110, []
    while left:
        found.append(min(sizes.next_size(left), left))
        left -= found[-1]
    assert found == [4, 32, 32, 34, 8]


def test_what_is_taken_whole_is_one_chunk_where_it_fits(scan_modules: None, snapshot: Snapshot) -> None:
    from bamquery.engine.cuda.scan.chunk.chunk_sizes import ChunkSizes, cut_chunks

    chunks = list(cut_chunks(listed(snapshot, None), ChunkSizes(50, 50, together=True)))
    assert len(chunks) == 1
    assert len(list(cut_chunks(listed(snapshot, None), ChunkSizes(50, 50)))) == 2
