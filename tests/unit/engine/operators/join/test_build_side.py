"""Build rows in memory: what is counted for them, and which of them are held together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.join import build_side
from bamquery.engine.operators.join.build_side import (
    KeyFacts,
    build_side_bytes,
    collect_blocks,
    collect_build_side,
    make_build_partitions,
    make_build_side,
    make_existence_side,
)
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.settings import Settings
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import Call, ColumnRef

DEVICE = CpuDevice()
KEY = (ColumnRef(0, "k", pa.int64()),)
BY_KEY = JoinCondition(KEY, KEY, (False,))
LESS = Call("less", (KEY[0], ColumnRef(1, "k", pa.int64())), pa.bool_())


def _context(limit: int, folder: Path | None = None) -> ExecutionContext[pa.RecordBatch]:
    settings = Settings().with_value("memory_limit", f"{limit}B")
    return ExecutionContext(DEVICE, settings, spill_folder=folder)


def _frame(count: int, first: int = 0) -> pa.RecordBatch:
    """Rows of eight bytes each."""
    return pa.record_batch([pa.array(range(first, first + count), pa.int64())], ["k"])


def _frames(counts: Sequence[int]) -> list[pa.RecordBatch]:
    return [_frame(count, sum(counts[:place])) for place, count in enumerate(counts)]


def test_two_copies_and_what_finds_each_row() -> None:
    assert build_side_bytes(10, 1000) == 2 * 1000 + 72 * 10


@pytest.mark.parametrize("spare", [0, 1, 615])
def test_chunks_are_held_as_far_as_they_fit(tmp_path: Path, spare: int) -> None:
    chunks = _frames([10, 0, 5, 10, 7])
    needed = build_side_bytes(25, 25 * 8)
    with _context(needed + spare, tmp_path) as context, context.memory.reservation("JOIN") as memory:
        left = iter(chunks)
        held, beyond = collect_build_side(context, left, memory)
        assert held == chunks[:4]
        assert beyond is not None
        assert beyond == chunks[4]
        assert memory.held == needed
        assert list(left) == []
    with _context(needed + spare) as context, context.memory.reservation("JOIN") as memory:
        assert collect_build_side(context, iter(chunks[:4]), memory) == (chunks[:4], None)
        with pytest.raises(MemoryLimitError, match="JOIN needs"):
            collect_build_side(context, iter(chunks), memory)


@pytest.mark.parametrize("most", [1 << 20, 9])
@pytest.mark.parametrize("beside", [0, 500])
@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_as_large_as_fits(
    monkeypatch: pytest.MonkeyPatch, most: int, beside: int, seed: int
) -> None:
    monkeypatch.setattr(build_side, "_MOST_ROWS", most)
    chosen = random.Random(seed)
    limit = 88 * chosen.randint(9, 40) + beside + chosen.randint(0, 80)
    chunks = _frames([chosen.choice([0, 1, 3, 20, 200]) for _ in range(6)])
    with _context(limit) as context, context.memory.reservation("JOIN") as memory:
        blocks = []
        for block in collect_blocks(DEVICE, chunks, memory, beside=beside):
            rows = sum(piece.num_rows for piece in block)
            assert memory.held == (beside + build_side_bytes(rows, 8 * rows) if rows else 0)
            blocks.append([piece.num_rows for piece in block])
            assert all(build_side_bytes(n, 8 * n) <= limit // 8 or n == 1 for n in blocks[-1])
            assert rows <= most
            assert [*pa.Table.from_batches(block)["k"].to_pylist()] == list(
                range(sum(map(sum, blocks[:-1])), sum(map(sum, blocks)))
            )
            block.clear()
        assert sum(map(sum, blocks)) == sum(chunk.num_rows for chunk in chunks)
        for block, following in pairwise(blocks):
            rows = sum(block) + following[0]
            assert beside + build_side_bytes(rows, 8 * rows) > limit or rows > most


def test_a_block_of_nothing_is_given_once() -> None:
    with _context(1000) as context, context.memory.reservation("JOIN") as memory:
        assert list(collect_blocks(DEVICE, [], memory)) == [[]]
    with (
        _context(80) as context,
        context.memory.reservation("JOIN") as memory,
        pytest.raises(MemoryLimitError, match="JOIN needs"),
    ):
        list(collect_blocks(DEVICE, _frames([1]), memory))


def test_chunks_that_fit_are_not_cut() -> None:
    with _context(100_000) as context, context.memory.reservation("JOIN") as memory:
        assert list(collect_blocks(DEVICE, _frames([60, 70]), memory)) == [_frames([60, 70])]


def test_a_table_is_counted_as_it_is() -> None:
    frames = _frames([10, 20])
    compared = JoinCondition(residual=LESS, compared=((KEY[0], KEY[0]),))
    for condition, expected in (
        (JoinCondition(residual=LESS), 240),
        (compared, build_side_bytes(30, 240)),
        (BY_KEY, None),
    ):
        for no_pairs in (False, True):
            with _context(100_000) as context, context.memory.reservation("JOIN") as memory:
                side = make_build_side(context, frames, condition, memory, no_pairs=no_pairs)
                assert memory.held == (2 * 240 + side.table.nbytes if expected is None else expected)
                assert (side.rows, side.frame.num_rows, side.has_nulls) == (30, 30, False)
                if expected is not None:
                    found = [len(build) for _, _, build in side.table.matches(_frame(2))]
                    assert sum(found) == (0 if no_pairs else 60)


def test_what_does_not_fit_afterwards_stays_as_it_was_foreseen() -> None:
    with _context(450) as context, context.memory.reservation("JOIN") as memory:
        memory.resize(400)
        make_build_side(context, _frames([30]), BY_KEY, memory, no_pairs=False)
        assert memory.held == 400


@pytest.mark.parametrize(("rows", "encoded"), [(3, True), (4, False)])
def test_strings_of_few_rows_are_encoded(monkeypatch: pytest.MonkeyPatch, rows: int, encoded: bool) -> None:
    monkeypatch.setattr(build_side, "_FEW_STRINGS", 3)
    words = pa.array(["a"] * rows, pa.large_string())
    frame = pa.record_batch([pa.array(range(rows), pa.int64()), words], ["k", "word"])
    with _context(10_000) as context, context.memory.reservation("JOIN") as memory:
        for encodes in (True, False):
            side = make_build_side(context, [frame], BY_KEY, memory, no_pairs=False, encodes=encodes)
            assert pa.types.is_dictionary(side.frame.column(1).type) == (encoded and encodes)


def test_partitions_in_memory_are_counted_together() -> None:
    frames = _frames([40, 0, 60])
    with _context(100_000) as context, context.memory.reservation("JOIN") as memory:
        sides = make_build_partitions(context, frames, BY_KEY, memory)
        assert frames == []
        assert sum(side.rows for side in sides) == 100
        assert sorted(n for side in sides for n in side.frame.column(0).to_pylist()) == list(range(100))
        assert memory.held == sum(side.frame.nbytes + side.table.nbytes for side in sides)
        assert not any(side.has_nulls for side in sides)


@pytest.mark.parametrize(("counts", "rows", "asked"), [((0, 0, 3, 5), 1, 3), ((0, 0), 0, 2), ((), 0, 0)])
def test_whether_there_is_a_row(counts: Sequence[int], rows: int, asked: int) -> None:
    given = []

    def frames() -> Iterator[pa.RecordBatch]:
        for frame in _frames(counts):
            given.append(frame)
            yield frame

    with _context(1000) as context:
        side = make_existence_side(context, frames())
    assert (side.rows, side.frame.num_rows, side.has_nulls, len(given)) == (rows, rows, False, asked)
    assert [len(build) for _, _, build in side.table.matches(_frame(2))] == [2 * rows]


@pytest.mark.parametrize(
    ("keys", "nulls_equal", "expected"),
    [
        ([[1], [None], [], [2]], (False,), True),
        ([[None], [1, 2]], (False,), True),
        ([[1], [2]], (False,), False),
        ([[None], [1]], (True,), False),
    ],
)
def test_facts_of_keys(keys: list[list[int | None]], nulls_equal: tuple[bool, ...], expected: bool) -> None:
    frames = [pa.record_batch([pa.array(some, pa.int64())], ["k"]) for some in keys]
    with _context(10_000) as context, context.memory.reservation("JOIN") as memory:
        facts = KeyFacts(context, JoinCondition(KEY, KEY, nulls_equal))
        given = list(facts.note_keys(frames))
        assert given == [frame for frame in frames if frame.num_rows]
        count = sum(map(len, keys))
        assert (facts.rows, facts.has_nulls) == (count, expected)
        side = facts.make_build_side(frames[:1], memory)
        assert (side.rows, side.has_nulls, side.frame.num_rows) == (count, expected, len(keys[0]))
        assert memory.held == side.frame.nbytes + side.table.nbytes


def test_of_several_keys_nulls_are_not_looked_for() -> None:
    keys = pa.record_batch([pa.array([None], pa.int64()), pa.array([None], pa.int64())], ["a", "b"])
    columns = tuple(ColumnRef(i, name, pa.int64()) for i, name in enumerate("ab"))
    with _context(10_000) as context:
        facts = KeyFacts(context, JoinCondition(columns, columns, (False, False)))
        assert list(facts.note_keys([keys])) == [keys]
        assert (facts.rows, facts.has_nulls) == (1, False)
