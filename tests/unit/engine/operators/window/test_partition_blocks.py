"""A partition's rows cut into blocks: whole groups of peers, or pieces of large ones."""

from __future__ import annotations

import random
import weakref
from collections.abc import Iterator

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.window.partition_blocks import BlockCutter, PartitionBlock
from bamquery.plan.expressions import ColumnRef

KEY = ColumnRef(0, "k", pa.int64())


def _frames(keys: list[int | None], sizes: list[int]) -> Iterator[pa.RecordBatch]:
    batch = pa.RecordBatch.from_arrays([pa.array(keys, pa.int64())], ["k"])
    start = 0
    for size in sizes:
        if size and start < len(keys):
            yield batch.slice(start, size)
            start += size


def _blocks(
    keys: list[int | None], sizes: list[int], block: int, largest: int, order: list[ColumnRef] | None
) -> list[PartitionBlock[pa.RecordBatch]]:
    cutter = BlockCutter(
        CpuDevice(), order, lambda rows, size: rows >= block, lambda rows, size: rows >= largest
    )
    found = list(cutter.blocks(_frames(keys, sizes)))
    assert cutter.bytes == 0
    assert [key for one in found for key in one.frame.column(0).to_pylist()] == keys
    assert all(one.rows == one.frame.num_rows > 0 for one in found)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_blocks_begin_and_end_with_groups(seed: int) -> None:
    draw = random.Random(seed)
    groups = [draw.choice([1, 1, 2, 3, 9, 40]) for _ in range(draw.randint(1, 30))]
    keys: list[int | None] = [number for number, size in enumerate(groups) for _ in range(size)]
    if draw.random() < 0.5:
        keys = [*keys, *[None] * draw.randint(1, 30)]
    sizes = [draw.randint(1, 12) for _ in keys]
    block, largest = draw.randint(1, 15), draw.randint(15, 30)
    before: object = "nothing"
    begun = 0
    for one in _blocks(keys, sizes, block, largest, [KEY]):
        own = one.frame.column(0).to_pylist()
        assert one.continues == (own[0] == before)
        assert one.groups == len(set(own)) - one.continues
        assert not one.piece or len(set(own)) == 1
        if one.continues:
            assert one.piece
            assert keys.count(own[0]) >= largest
        before = own[-1]
        begun += one.groups
    assert begun == len(set(keys))


def test_small_groups_stay_together() -> None:
    keys: list[int | None] = [0, 0, 1, 1, 1, 2, 2, 3]
    found = _blocks(keys, [3, 3, 2], 3, 100, [KEY])
    assert [(one.rows, one.groups) for one in found] == [(2, 1), (3, 1), (2, 1), (1, 1)]
    assert not any(one.piece or one.continues for one in found)


def test_without_an_order_all_rows_are_peers() -> None:
    found = _blocks([1, 2, 3, 4, 5], [2, 2, 1], 2, 2, [])
    assert [(one.rows, one.groups, one.continues, one.piece) for one in found] == [
        (2, 1, False, True),
        (2, 0, True, True),
        (1, 0, True, True),
    ]


def test_a_block_is_enough_by_the_bytes_held() -> None:
    asked = []

    def is_enough(rows: int, size: int) -> bool:
        asked.append((rows, size))
        return size >= 40

    cutter = BlockCutter(CpuDevice(), [KEY], is_enough, is_enough)
    found = list(cutter.blocks(_frames([0, 0, 1, 1, 2, 2, 3, 3], [2, 2, 1, 3])))
    assert [one.rows for one in found] == [4, 4]
    # The third frame's row begins a group, which stays for the fourth.
    assert asked == [(2, 16), (4, 32), (5, 40), (4, 32)]


def test_where_peers_do_not_matter() -> None:
    found = _blocks([1, 1, 1, 1, 1], [2, 2, 1], 2, 2, None)
    assert [(one.rows, one.continues, one.piece) for one in found] == [
        (2, False, False),
        (2, False, False),
        (1, False, False),
    ]


def test_frames_are_let_go_of_once_they_are_joined() -> None:
    """They and the joined ones are there at once; what is cut of these is not on top of both."""

    class Watching(CpuDevice):
        def slice(self, frame: pa.RecordBatch, offset: int, length: int) -> pa.RecordBatch:
            if frame.num_rows > 2:
                kept.append(sum(one() is not None for one in given))
            return super().slice(frame, offset, length)

    kept: list[int] = []
    given: list[weakref.ref[pa.RecordBatch]] = []

    def frames() -> Iterator[pa.RecordBatch]:
        for start in (0, 2):
            batch = pa.record_batch([pa.array([start, start + 1])], ["k"])
            given.append(weakref.ref(batch))
            yield batch
            del batch

    cutter = BlockCutter(Watching(), [KEY], lambda rows, size: rows >= 4, lambda rows, size: False)
    assert [one.rows for one in cutter.blocks(frames())] == [3, 1]
    # The last one is still the caller's.
    assert kept
    assert max(kept) <= 1
