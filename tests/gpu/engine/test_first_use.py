"""The first use of a program on a GPU: operators compute while its kernel is compiled, and waits can end."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bamquery
from bamquery.driver.compile.compile_pool import POOL
from bamquery.driver.compile.compiler import CompiledKernel, KernelText, compile_kernel
from bamquery.driver.compile.kernel_cache import KernelCache
from bamquery.driver.gpu import device as gpu_module
from bamquery.engine.cuda.pipeline.program_kernels import ProgramKernels
from bamquery.engine.device import Device
from bamquery.errors import CancelledError
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef
from bamquery.plan.nodes import Field
from bamquery.statement_context.cancellation import use_cancellation_check
from tests.devices.kernels import waiting_for_kernels

_READY = ProgramKernels.ready
"""As it is: other tests here wait for kernels."""
_LONG_S = 60.0
_ROWS = 20_000
_QUERIES = (
    "SELECT k, sum(a * b + 3), avg(a - b), min(d), max(m), count(*) FILTER (WHERE a > b) FROM t GROUP BY k",
    "SELECT sum(m * 2), avg(m), sum(a % 7), max(a - b), count(b) FROM t",
    "SELECT a * 2 + b, a - 3 * b FROM t WHERE a % 3 = 1 OR b + a < 100",
)


class HeldCompiler:
    """NVRTC, which does not begin with a text before it is let go, and finds none on disk."""

    def __init__(self, cache: KernelCache) -> None:
        self.begun = threading.Event()
        self._go_on = threading.Event()
        self._cache = cache

    def compile(self, source: Any, options: Any, cache: Any) -> CompiledKernel:
        if not isinstance(source, KernelText):
            return compile_kernel(source, options, cache)
        self.begun.set()
        assert self._go_on.wait(_LONG_S)
        return compile_kernel(source, options, self._cache)

    def let_go(self) -> None:
        self._go_on.set()
        assert POOL.settle(_LONG_S)


@pytest.fixture
def compiler(device: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldCompiler]:
    """For a session that has no kernel of a program so far, nor knows one that failed."""
    from bamquery.engine.cuda.pipeline import compiled_aggregates, compiled_expressions, row_selection

    held, session = HeldCompiler(KernelCache(tmp_path / "kernels")), device.session
    stored = gpu_module.stored_kernel

    def find_stored(source: Any, options: Any, cache: Any) -> CompiledKernel | None:
        return None if isinstance(source, KernelText) else stored(source, options, cache)

    monkeypatch.setattr(gpu_module, "compile_kernel", held.compile)
    monkeypatch.setattr(gpu_module, "stored_kernel", find_stored)
    monkeypatch.setattr(ProgramKernels, "ready", _READY)
    fresh = ProgramKernels(session.gpu, session.lock, session.driver_stream)
    monkeypatch.setattr(session, "program_kernels", fresh, raising=False)
    compiled_aggregates.compile_aggregates.cache_clear()
    compiled_expressions._compile.cache_clear()
    row_selection._compile.cache_clear()
    yield held
    held.let_go()


@pytest.fixture
def database(device: Device[Any], tmp_path: Path) -> Iterator[bamquery.Connection]:
    rows = range(_ROWS)
    table = pa.table(
        {
            "k": pa.array([row % 5 if row % 11 else None for row in rows], pa.int64()),
            "a": pa.array([row * 7919 % 10_007 for row in rows], pa.int64()),
            "b": pa.array([row % 101 if row % 13 else None for row in rows], pa.int64()),
            "d": pa.array([row % 97 / 4 for row in rows], pa.float64()),
            "m": pa.array(rows, pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(10, 2), safe=False),
        }
    )
    with bamquery.connect(tmp_path / "first.bq", device="cuda:0") as connection:
        connection.load("t", table)
        yield connection


def _rows(relation: Any) -> list[str]:
    return sorted(map(repr, relation.to_arrow().to_pylist()))


def _kernels(relation: Any) -> list[str]:
    """What each operator says of them."""
    operators = relation.profile.root.walk()
    return [one.details["kernels"] for one in operators if "kernels" in one.details]


@pytest.mark.parametrize("sql", _QUERIES)
def test_operators_compute_until_kernels_are_there(
    database: bamquery.Connection, compiler: HeldCompiler, sql: str
) -> None:
    database.set("programs", False)
    wanted = _rows(database.sql(sql))
    database.set("programs", True)
    first = database.sql(sql)
    assert _rows(first) == wanted
    assert _kernels(first), "no program was asked for"
    assert all("by operators meanwhile" in said for said in _kernels(first))
    assert not any("compiled in" in said for said in _kernels(first))
    compiler.let_go()
    for _ in range(3):  # a kernel for few groups is begun with once they are seen to be few
        assert _rows(database.sql(sql)) == wanted
        compiler.let_go()
    last = database.sql(sql)
    assert _rows(last) == wanted
    for said in _kernels(last):
        computed, _, all_of_them = said.partition(" chunks")[0].partition(" of ")
        assert computed == all_of_them, said


def test_states_of_both_are_merged(device: Any, compiler: HeldCompiler) -> None:
    """Three chunks, of which the operators compute the first."""
    kind, total = pa.int64(), pa.decimal128(38, 0)
    k, a, d = ColumnRef(0, "k", kind), ColumnRef(1, "a", kind), ColumnRef(2, "d", pa.float64())
    calls = (
        AggregateCall("sum", (Call("multiply", (a, a), kind),), total),
        AggregateCall("avg", (Call("add", (a, k), kind),), pa.float64()),
        AggregateCall("min", (d,), pa.float64()),
        AggregateCall("sum", (d,), pa.float64()),
        AggregateCall("count_star", (), kind),
    )
    fields = [Field("k", kind), *(Field(f"c{n}", call.type) for n, call in enumerate(calls))]

    def rows(programs: bool) -> Any:
        own = type(device)(device.session, programs=programs)
        aggregation = own.aggregation((k,), calls)
        states = []
        for chunk in range(3):
            values = range(chunk, 3000 + chunk)
            batch = pa.record_batch(
                [
                    pa.array([value % (4 + chunk) for value in values], kind),
                    pa.array([None if value % 17 == 0 else 2**30 - value for value in values], kind),
                    pa.array([value / 8 for value in values], pa.float64()),
                ],
                ["k", "a", "d"],
            )
            states.append(aggregation.partial(own.from_arrow(batch)))
            if programs and chunk == 0:
                compiler.let_go()
        gathered = [state.gathered for state in states]
        assert gathered == ([False, True, True] if programs else [False] * 3)
        return own.to_arrow(aggregation.final(aggregation.merge(states)), fields).to_pylist()

    assert rows(programs=True) == rows(programs=False)


def test_ctrl_c_ends_a_wait_for_a_kernel(database: bamquery.Connection, compiler: HeldCompiler) -> None:
    def press() -> None:
        assert compiler.begun.wait(_LONG_S)
        time.sleep(0.2)  # the query waits by now, as a rule
        _thread.interrupt_main()

    pressing = threading.Thread(target=press)
    pressing.start()
    with waiting_for_kernels(), pytest.raises(KeyboardInterrupt):
        database.sql(_QUERIES[0]).to_arrow()
    pressing.join(_LONG_S)
    first = database.sql(_QUERIES[0])
    found = _rows(first)
    assert any("by operators meanwhile" in said for said in _kernels(first)), "nothing was compiled meanwhile"
    compiler.let_go()
    assert _rows(database.sql(_QUERIES[0])) == found


def test_a_cancelled_query_waits_for_no_kernel(device: Any, compiler: HeldCompiler) -> None:
    def check() -> None:
        if compiler.begun.is_set():
            raise CancelledError("the query was cancelled")

    kernels, text = device.session.program_kernels, 'extern "C" __global__ void program(int* to) { *to = 1; }'
    with waiting_for_kernels(), use_cancellation_check(check), pytest.raises(CancelledError):
        kernels.ready(text)
    assert kernels.ready(text) is None
    compiler.let_go()
    assert kernels.ready(text) is not None


def test_kernels_that_are_let_go_of_are_unloaded(device: Any, compiler: HeldCompiler) -> None:
    """Loads many more than are kept, each of which is started once."""
    session = device.session
    session.enter()
    compiler.let_go()
    kernels = ProgramKernels(session.gpu, session.lock, session.driver_stream, kept=2)
    for number in range(12):
        text = f'extern "C" __global__ void program(unsigned long long* to) {{ *to += {number}; }}'
        kernels.compilation(text).wait()
        ready = kernels.ready(text)
        assert ready is not None
        memory = session.allocate(8, "a number")
        session.gpu.cuda("clear", "cuMemsetD8Async", memory.ptr, 0, 8, session.driver_stream)
        session.launcher.start(ready.kernel, memory.ptr, grid=1, block=1, stream=session.driver_stream)
        del ready
        words = session.read_back.take(1)
        copy = (words.address, memory.ptr, 4, session.driver_stream)
        session.gpu.cuda("copy", "cuMemcpyDtoDAsync", *copy)
        assert session.read_back.read(words) == [number]
    assert len(kernels._programs) == 2
    assert len(kernels._leaving) + len(kernels._unused) <= 2, "code that nobody has goes"
