"""Memory of large arrays, kept for the next ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery import _native as native
from bamquery.engine.cpu.device import CPU, CpuDevice
from bamquery.engine.execution import large_memory as large_memory_module
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.large_memory import keep_large_memory, use_large_memory
from bamquery.engine.execution.memory_budget import release_unused_memory

_MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    native.release_large_memory(0)
    yield
    native.keep_large_memory(0)


def _in_use() -> int:
    return native.large_memory()[0]


def _kept() -> int:
    return native.large_memory()[1]


def test_large_arrays_of_a_query_are_kept_for_the_next_ones() -> None:
    before = _in_use()
    with keep_large_memory(1 << 30), use_large_memory():
        one = np.arange(_MIB)
        place = one.ctypes.data
        assert _in_use() == before + 8 * _MIB
        small = np.empty(_MIB - 1, np.uint8)
        assert _in_use() == before + 8 * _MIB
        del one
        assert (_in_use(), _kept()) == (before, 8 * _MIB)
        zeros = np.zeros(_MIB)
        assert (zeros.ctypes.data, zeros.any()) == (place, False)
    elsewhere = np.arange(_MIB)
    assert _in_use() == before + 8 * _MIB
    del zeros, small, elsewhere
    assert _in_use() == before


def test_arrays_grow_and_shrink() -> None:
    before = _in_use()
    with use_large_memory():
        one = np.arange(_MIB)
        for rows in (2 * _MIB, 3 * _MIB, 10, 5 * _MIB):
            kept = min(rows, len(one), 10)
            one.resize(rows, refcheck=False)
            assert one[:kept].tolist() == list(range(kept))
        assert not one[10:].any()
        values = one[:1000].copy()
        values.resize(_MIB, refcheck=False)
    del one, values
    assert _in_use() == before


def test_who_has_an_array_lets_go_of_it_on_any_thread() -> None:
    before = _in_use()
    with use_large_memory():
        buffer = pa.py_buffer(np.full(_MIB, 7).data)
    column: pa.Array = pa.Array.from_buffers(pa.int64(), _MIB, [None, buffer])
    del buffer
    assert _in_use() == before + 8 * _MIB
    held = [column]
    del column
    with ThreadPoolExecutor(1) as other:
        other.submit(held.clear).result()
    assert _in_use() == before


def test_whoever_begins_within_another_one_leaves_it_its_memory() -> None:
    before = _in_use()
    with use_large_memory():
        with use_large_memory():
            pass
        one = np.empty(_MIB)
        assert _in_use() == before + 8 * _MIB
        with ThreadPoolExecutor(1) as other:  # which does not work for the query
            two = other.submit(np.empty, _MIB).result()
        assert _in_use() == before + 8 * _MIB
    del one, two


def test_the_least_limit_of_the_queries_that_run_counts() -> None:
    def give(size: int) -> int:
        with use_large_memory():
            np.empty(size, np.uint8)
        return _kept()

    with keep_large_memory(1 << 30):  # a sixteenth: 64 MiB
        assert give(48 * _MIB) == 48 * _MIB
        with keep_large_memory(16 * _MIB):
            assert (_kept(), give(2 * _MIB), give(_MIB)) == (0, 0, _MIB)
        assert give(48 * _MIB) == 49 * _MIB
    with keep_large_memory(1 << 50):
        assert give(1 << 30) == 49 * _MIB  # never so much at once, whatever the limit is
    release_unused_memory()
    assert _kept() == 0


def test_what_is_kept_is_given_back_once_nobody_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_memory_module, "_IDLE_S", 0.01)
    monkeypatch.setattr(large_memory_module, "_is_watched", False)
    for _ in range(2):
        with keep_large_memory(1 << 30), use_large_memory():
            np.empty(_MIB)
            end = time.monotonic() + 30
            while _kept():
                assert time.monotonic() < end
                time.sleep(0.01)
            while large_memory_module._is_watched:
                assert time.monotonic() < end
                time.sleep(0.001)


def test_no_thread_for_it_means_that_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(task: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(large_memory_module, "run_on_thread", refuse)
    monkeypatch.setattr(large_memory_module, "_is_watched", False)
    with keep_large_memory(1 << 30), use_large_memory():
        np.empty(_MIB)
        assert _kept() == 0


def test_queries_use_it_and_their_answers_stay() -> None:
    connection = bamquery.connect(device="cpu")
    connection.execute("SET threads = 2")
    sql = "SELECT i, i * 2 AS double FROM range(3000000) AS r(i) ORDER BY i DESC"
    before = _in_use()
    one = connection.sql(sql).to_arrow()
    two = connection.sql(sql).to_arrow()
    assert one.equals(two)
    assert one["double"][0].as_py() == 5999998
    assert _kept() > 0
    del one, two
    assert _in_use() == before


@pytest.mark.parametrize("on_host", [True, False])
def test_a_gpus_query_leaves_arrays_to_numpy(on_host: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept for it, so that each large array would be mapped anew."""
    context = ExecutionContext(CpuDevice())
    monkeypatch.setattr(CpuDevice, "capabilities", replace(CPU, on_host=on_host))
    before = _in_use()
    with context, context.current():
        array = np.arange(_MIB)
        assert (_in_use() > before) == on_host
    del array
