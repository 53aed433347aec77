"""Rows around a block: a block waits for no more of them than it needs, and they are let go of in time."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.window.call_methods import choose_method
from bamquery.engine.operators.window.lookahead import Lookahead
from bamquery.engine.operators.window.lookaround import LookaroundRows
from bamquery.engine.operators.window.partition_blocks import PartitionBlock
from tests.plans import window_of

SCHEMA = pa.schema([("k", pa.int64())])


def _rows(call: str) -> LookaroundRows[pa.RecordBatch]:
    device = CpuDevice()
    window = window_of(f"{call} OVER (ORDER BY k)", SCHEMA)
    method = choose_method(window.calls[0], device)
    assert method is not None
    return LookaroundRows(device, window, [method], [None], [0])


def _block(start: int, count: int = 4) -> PartitionBlock[pa.RecordBatch]:
    return PartitionBlock(pa.record_batch([np.arange(start, start + count)], schema=SCHEMA), count)


@pytest.mark.parametrize(("ahead", "pulled"), [(0, 1), (1, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_a_block_waits_for_the_rows_that_it_needs(ahead: int, pulled: int) -> None:
    events: list[str] = []

    def known() -> Iterator[tuple[PartitionBlock[pa.RecordBatch], Lookahead]]:
        for start in range(0, 40, 4):
            events.append("pulled")
            yield _block(start), Lookahead(states_after=[None])

    def room(size: int) -> Iterator[None]:
        events.append(f"asked for {size}")
        yield None

    blocks = _rows(f"lead(k, {ahead})").await_lookahead(known(), room)
    before = []
    while (one := next(blocks)) is None:
        before.append(one)
    assert events == ["pulled", "asked for 0"] * pulled
    assert len(before) == pulled
    assert one[0].frame.column(0)[0].as_py() == 0


@pytest.mark.parametrize("back", [0, 3])
def test_rows_that_nobody_looks_back_at_are_let_go_of(back: int) -> None:
    near = _rows(f"lag(k, {back})")
    numbers = np.arange(4)
    owned = weakref.ref(numbers)
    near.advance(PartitionBlock(pa.record_batch([pa.array(numbers)], schema=SCHEMA), 4))
    del numbers
    assert (owned() is not None) == (back > 0)
    assert near.bytes == 8 * back
    near.advance(_block(4))
    assert owned() is None
    assert near.bytes == 8 * back
