"""Chunks that come while a program's kernel is compiled, over a stand-in for libcudf: the same answers."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bamquery.driver.compile.compile_pool import Compilation, CompilePool
from bamquery.driver.compile.compiler import CompiledKernel, KernelText
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.filter import Filter
from bamquery.engine.operators.project import Project
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.errors import CancelledError, GpuError, KernelError, MemoryLimitError
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field
from bamquery.statement_context.cancellation import use_cancellation_check
from tests.conformance.harness import run
from tests.unit.engine.cuda import fake_libcudf
from tests.unit.engine.cuda_scan.emulator import Emulator

LONG_S = 60.0
LONG, DOUBLE, MONEY = pa.int64(), pa.float64(), pa.decimal128(10, 2)
TOTAL, TOTAL_MONEY = pa.decimal128(38, 0), pa.decimal128(38, 2)
SCHEMA = pa.schema([("k", LONG), ("a", LONG), ("m", MONEY), ("d", DOUBLE)])
K, A, M, D = (ColumnRef(number, field.name, field.type) for number, field in enumerate(SCHEMA))
CHUNKS = 4


class Compiler:
    """Takes the place of NVRTC: what `holds` says so of is not compiled before it is let go."""

    def __init__(self) -> None:
        self.holds: Callable[[str], bool] = lambda text: True
        self.fails = False
        self.asked: list[str] = []
        self._go_on = threading.Event()
        self._pool = CompilePool(threads=4)

    def compile_text(self, text: KernelText) -> Compilation:
        self.asked.append(text.text)
        return self._pool.start(text, text.name, lambda: self._compile(text.text))

    def _compile(self, text: str) -> CompiledKernel:
        if self.holds(text):
            assert self._go_on.wait(LONG_S)
        if self.fails:
            raise KernelError("does not compile", "generated.cu", 3, "what the compiler says")
        return CompiledKernel(text.encode(), "", cached=False)

    def let_go(self) -> None:
        self._go_on.set()
        self.finish()

    def finish(self) -> None:
        """All that it does not hold."""
        assert self._pool.settle(LONG_S)


@pytest.fixture
def compiler() -> Iterator[Compiler]:
    found = Compiler()
    yield found
    found.let_go()


@pytest.fixture
def gpu(device: Device[Any], emulator: Emulator, compiler: Compiler) -> Any:
    """A device that has compiled nothing so far."""
    rooms = "bamquery.engine.cuda.pipeline"
    sys.modules[f"{rooms}.compiled_aggregates"].compile_aggregates.cache_clear()
    sys.modules[f"{rooms}.compiled_expressions"]._compile.cache_clear()
    sys.modules[f"{rooms}.row_selection"]._compile.cache_clear()
    found = type(device)(fake_libcudf.FakeSession(emulator))  # type: ignore[call-arg]
    found.session.gpu.compile_text = compiler.compile_text  # type: ignore[attr-defined]
    return found


def batch(chunk: int, *, nulls: bool = True) -> pa.RecordBatch:
    """A few rows, others in each chunk: groups that are in some chunks only, and in another order."""
    rows = range(7)
    values: list[list[Any]] = [
        [(row * (chunk + 1)) % 5 for row in rows],
        [2**62 - row if row % 3 else -row - chunk for row in rows],
        [Decimal(row * 10**7 + chunk) / 100 for row in rows],
        [[0.5, -0.25, 1e9, 3.0, -0.0, 0.0, 7.5][(row + chunk) % 7] for row in rows],
    ]
    if nulls:
        values[0][chunk % 7] = values[1][chunk % 3] = values[2][1] = values[3][6] = None
    columns = [pa.array(some, field.type) for some, field in zip(values, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


class Chunks(Operator[Any]):
    """Some chunks; something happens before each."""

    def __init__(self, batches: list[pa.RecordBatch], before: Callable[[int], None]) -> None:
        super().__init__(tuple(Field(f.name, f.type) for f in SCHEMA), (), OperatorProfile("Chunks"))
        self._batches, self._before = batches, before

    def produce(self, context: ExecutionContext[Any]) -> Generator[Any, None, None]:
        for number, one in enumerate(self._batches):
            self._before(number)
            yield context.device.from_arrow(one)


def chunks(compiler: Compiler | None = None, ready: int = 0, *, nulls: bool = True) -> Chunks:
    """All, of which `ready` come before the kernels do."""

    def before(number: int) -> None:
        if compiler is not None and number == ready:
            compiler.let_go()
        elif compiler is not None and number > ready:
            compiler.finish()

    return Chunks([batch(number, nulls=nulls) for number in range(CHUNKS)], before)


def constant(number: int) -> Expression:
    return Literal(pa.scalar(number, LONG))


ODD = Call("equal", (Call("modulo", (A, constant(2)), LONG), constant(1)), pa.bool_())
CALLS = (
    AggregateCall("count_star", (), LONG),
    AggregateCall("count", (A,), LONG),
    AggregateCall("sum", (A,), TOTAL),
    AggregateCall("avg", (A,), DOUBLE),
    AggregateCall("sum", (M,), TOTAL_MONEY),
    AggregateCall("avg", (M,), DOUBLE),
    AggregateCall("sum", (D,), DOUBLE),
    AggregateCall("min", (D,), DOUBLE),
    AggregateCall("max", (A,), LONG),
    AggregateCall("min", (M,), MONEY),
    AggregateCall("sum", (Call("subtract", (A, K), LONG),), TOTAL, filter=ODD),
)


class Groups(Operator[Any]):
    """GROUP BY whose chunks are taken one by one, however small, and merged at the end."""

    def __init__(self, rows: Operator[Any], keys: tuple[Expression, ...]) -> None:
        fields = [Field(f"key{n}", key.type) for n, key in enumerate(keys)]
        fields += [Field(f"c{n}", call.type) for n, call in enumerate(CALLS)]
        super().__init__(tuple(fields), (rows,), OperatorProfile("Groups"))
        self._keys = keys
        self.program = ""

    def produce(self, context: ExecutionContext[Any]) -> Generator[Any, None, None]:
        aggregation = context.device.aggregation(self._keys, CALLS)
        states = [aggregation.partial(frame) for frame in self.children[0].frames(context)]
        self.program = aggregation.program or ""
        yield aggregation.final(aggregation.merge(states))


def rows_of(operator: Operator[Any], device: Device[Any]) -> list[str]:
    """As texts, which tell zeros apart."""
    return [repr(row) for row in run(operator, device).to_pylist()]


@pytest.mark.parametrize("keys", [(), (K,)], ids=["all", "by key"])
@pytest.mark.parametrize("ready", range(CHUNKS + 1))
def test_groups_are_the_same_whenever_kernels_come(
    gpu: Any, compiler: Compiler, keys: tuple[Expression, ...], ready: int
) -> None:
    wanted = rows_of(Groups(chunks(), keys), type(gpu)(gpu.session, programs=False))
    operator = Groups(chunks(compiler, ready), keys)
    assert rows_of(operator, gpu) == wanted
    said, late = operator.profile.details["kernels"], max(ready, 1)
    assert said.startswith(f"{CHUNKS - late} of {CHUNKS} chunks, {late} by operators meanwhile")
    assert ("compiled in" in said) == (ready < CHUNKS)


def test_groups_are_those_of_the_cpu(gpu: Any, compiler: Compiler) -> None:
    """Whose sums of doubles come in another order: here all of them are exact."""
    assert rows_of(Groups(chunks(compiler, 2), (K,)), gpu) == rows_of(Groups(chunks(), (K,)), CpuDevice())


SUMS = (Call("add", (Call("multiply", (K, constant(3)), LONG), K), LONG), Call("subtract", (K, A), LONG))


KEEP = Call("or", (ODD, Call("less", (K, constant(2)), pa.bool_())), pa.bool_())
COMPUTE: list[Callable[[Operator[Any]], Operator[Any]]] = [
    lambda rows: Project(rows, SUMS, (Field("x", LONG), Field("y", LONG))),
    lambda rows: Filter(rows, KEEP),
]


@pytest.mark.parametrize("compute", COMPUTE, ids=["project", "filter"])
@pytest.mark.parametrize("ready", range(CHUNKS + 1))
def test_columns_are_the_same_whenever_kernels_come(
    gpu: Any, compiler: Compiler, compute: Callable[[Operator[Any]], Operator[Any]], ready: int
) -> None:
    operator, late = compute(chunks(compiler, ready)), max(ready, 1)
    assert rows_of(operator, gpu) == rows_of(compute(chunks()), CpuDevice())
    said = operator.profile.details["kernels"]
    assert said.startswith(f"{CHUNKS - late} of {CHUNKS} chunks, {late} by operators meanwhile")


def test_a_selection_that_does_not_compile_is_a_warning(gpu: Any, compiler: Compiler) -> None:
    compiler.fails = True
    operator = Filter(chunks(compiler, 1), KEEP)
    with pytest.warns(RuntimeWarning, match=r"generated\.cu:3: does not compile"):
        found = rows_of(operator, gpu)
    assert found == rows_of(Filter(chunks(), KEEP), CpuDevice())
    assert operator.profile.details["kernels"].endswith("generated.cu:3: does not compile")
    again = Filter(chunks(), KEEP)
    assert rows_of(again, gpu) == found, "without another warning"


def test_a_selection_that_operators_have_no_memory_for_waits(
    gpu: Any, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler.holds = lambda text: False
    module = importlib.import_module("bamquery.engine.cuda.pipeline.row_selection")

    def fail(*_: Any) -> None:
        raise MemoryLimitError("a condition needs more")

    monkeypatch.setattr(module, "evaluate_columns", fail)
    assert rows_of(Filter(chunks(), KEEP), gpu) == rows_of(Filter(chunks(), KEEP), CpuDevice())


def test_a_filter_is_begun_with_the_kernel_that_it_takes(gpu: Any, compiler: Compiler) -> None:
    gpu.start_compiling_filter(KEEP, [True, True, None, None])
    compiler.let_go()
    operator = Filter(chunks(), KEEP)
    rows_of(operator, gpu)
    assert len(compiler.asked) == 1
    assert operator.profile.details["kernels"].startswith(f"{CHUNKS} of {CHUNKS} chunks, compiled in")


def test_a_kernel_that_does_not_compile_is_a_warning(gpu: Any, compiler: Compiler) -> None:
    compiler.fails = True
    operator = Groups(chunks(compiler, 1), (K,))
    with pytest.warns(RuntimeWarning, match=r"generated\.cu:3: does not compile\nwhat the compiler says"):
        found = rows_of(operator, gpu)
    assert found == rows_of(Groups(chunks(), (K,)), CpuDevice())
    assert operator.profile.details["kernels"].endswith("generated.cu:3: does not compile")
    assert operator.program == "given up: generated.cu:3: does not compile"
    again = Groups(chunks(), (K,))
    assert rows_of(again, gpu) == found, "without another warning"
    assert again.program == operator.program


def test_a_compiler_that_is_not_there_is_a_warning(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_text(text: KernelText) -> Compilation:
        raise GpuError("NVRTC cannot be loaded")

    gpu.session.gpu.compile_text = compile_text
    gpu.start_compiling_aggregates(CALLS, [True] * 4, by_keys=True)
    with pytest.warns(RuntimeWarning, match="NVRTC cannot be loaded"):
        assert rows_of(Groups(chunks(), (K,)), gpu) == rows_of(Groups(chunks(), (K,)), CpuDevice())


def test_what_operators_have_no_memory_for_waits(
    gpu: Any, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler.holds = lambda text: False
    aggregation = gpu.aggregation((K,), CALLS)
    module = importlib.import_module("bamquery.engine.cuda.pipeline.compiled_expressions")
    evaluate = module.evaluate_columns

    def fail(*_: Any) -> None:
        raise MemoryLimitError("an expression needs more")

    def evaluate_none(kernels: Any, expressions: Any, frame: Any) -> Any:
        return fail() if expressions else evaluate(kernels, expressions, frame)

    monkeypatch.setattr(module, "evaluate_columns", evaluate_none)
    monkeypatch.setattr(type(aggregation), "_state_by_operators", fail)
    frame = gpu.from_arrow(batch(0))
    (state,) = gpu.to_arrow(
        aggregation.final(aggregation.partial(frame)), Groups(chunks(), (K,)).fields
    ).columns[1:2]
    assert sum(state.to_pylist()) == 7
    found = gpu.to_arrow(gpu.evaluate(SUMS, frame), [Field("x", LONG), Field("y", LONG)])
    assert found.column(0).to_pylist() == [None, 4, 8, 12, 16, 0, 4]


def test_a_wait_for_a_kernel_can_be_cancelled(
    gpu: Any, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("bamquery.engine.cuda.pipeline.compiled_expressions")

    def fail(*_: Any) -> None:
        raise MemoryLimitError("an expression needs more")

    def stop() -> None:
        raise CancelledError("the query was cancelled")

    monkeypatch.setattr(module, "evaluate_columns", fail)
    with use_cancellation_check(stop), pytest.raises(CancelledError):
        gpu.evaluate(SUMS, gpu.from_arrow(batch(0)))
    compiler.let_go()
    monkeypatch.undo()
    found = gpu.evaluate(SUMS, gpu.from_arrow(batch(0)))
    assert len(compiler.asked) == 1
    assert len(found.columns) == 2


def test_a_wait_for_a_kernel_of_a_file_can_be_cancelled(
    gpu: Any, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else's kernels wait for it."""
    session = gpu.session
    slow = compiler.compile_text(KernelText("slow", "slow"))
    others: list[bool] = []

    def stop() -> None:
        other = threading.Thread(target=lambda: others.append(session.lock.acquire(timeout=LONG_S)))
        other.start()
        other.join(LONG_S)
        raise CancelledError("the query was cancelled")

    monkeypatch.setattr(session.gpu, "compilation", lambda path, *, defines=(): slow, raising=False)
    launcher = importlib.import_module("bamquery.engine.cuda.launcher").Launcher(session.gpu, session.lock)
    with use_cancellation_check(stop), pytest.raises(CancelledError):
        launcher.kernel("pipeline/group_cells", "cells_clear")
    assert others == [True]


def _kernels_of(operator: Operator[Any]) -> str:
    return str(operator.profile.details["kernels"]).partition(", compiled")[0]


def test_a_kernel_that_looks_at_more_nulls_does_meanwhile(gpu: Any, compiler: Compiler) -> None:
    compiler.holds = lambda text: ", true>" not in text
    gpu.start_compiling(SUMS, [True] * 4)
    compiler.finish()
    operator = Project(chunks(nulls=False), SUMS, (Field("x", LONG), Field("y", LONG)))
    wanted = rows_of(Project(chunks(nulls=False), SUMS, operator.fields), CpuDevice())
    assert rows_of(operator, gpu) == wanted
    assert _kernels_of(operator) == "4 of 4 chunks"
    assert len(compiler.asked) == 2, "its own is compiled all the same"


def test_a_kernel_that_looks_at_fewer_nulls_does_not(gpu: Any, compiler: Compiler) -> None:
    compiler.holds = lambda text: ", true>" in text
    gpu.start_compiling(SUMS, [False] * 4)
    compiler.finish()
    operator = Project(chunks(), SUMS, (Field("x", LONG), Field("y", LONG)))
    assert rows_of(operator, gpu) == rows_of(Project(chunks(), SUMS, operator.fields), CpuDevice())
    assert _kernels_of(operator) == "0 of 4 chunks, 4 by operators meanwhile"


def test_few_patterns_of_nulls_have_kernels_of_their_own(
    gpu: Any, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["bamquery.engine.cuda.pipeline.gpu_program"], "_MOST_PATTERNS", 2)
    compiler.holds = lambda text: False
    rows = {name: pa.array([1, 2, 3], LONG) for name in "kamd"}
    nulls = [set("k"), set("a"), set(), set("ka"), set("k")]
    batches = [
        pa.record_batch(
            {name: pa.array([1, None, 3], LONG) if name in some else rows[name] for name in "kamd"}
        )
        for some in nulls
    ]
    project = Project(
        Chunks(batches, lambda number: compiler.finish()), SUMS, (Field("x", LONG), Field("y", LONG))
    )
    again = Project(Chunks(batches, lambda number: None), SUMS, project.fields)
    assert rows_of(project, gpu) == rows_of(again, CpuDevice())
    compiler.finish()
    assert rows_of(again, gpu) == rows_of(project, CpuDevice())
    assert len(compiler.asked) == 3
    assert _kernels_of(again) == "5 of 5 chunks"


def test_a_kernel_for_many_groups_does_few(gpu: Any, compiler: Compiler) -> None:
    compiler.holds = lambda text: "bool in_block" not in text
    gpu.start_compiling_aggregates(CALLS, [True] * 4, by_keys=True)
    compiler.finish()
    operator = Groups(chunks(), (K,))
    assert rows_of(operator, gpu) == rows_of(Groups(chunks(), (K,)), CpuDevice())
    assert _kernels_of(operator) == "4 of 4 chunks"
    assert any("bool in_block" not in text for text in compiler.asked)


def test_one_group_is_begun_with_the_kernel_that_it_takes(gpu: Any, compiler: Compiler) -> None:
    compiler.holds = lambda text: False
    gpu.start_compiling_aggregates(CALLS, [False] * 4, by_keys=False)
    compiler.finish()
    operator = Groups(chunks(nulls=False), ())
    assert rows_of(operator, gpu) == rows_of(Groups(chunks(nulls=False), ()), CpuDevice())
    assert len(compiler.asked) == 1
    assert _kernels_of(operator) == "4 of 4 chunks"


def test_what_is_not_known_is_not_begun_with(gpu: Any, compiler: Compiler) -> None:
    gpu.start_compiling(SUMS, [False, None, False, False])
    gpu.start_compiling_aggregates(CALLS, [None] * 4, by_keys=True)
    gpu.start_compiling([A], [False] * 4)
    type(gpu)(gpu.session, programs=False).start_compiling(SUMS, [False] * 4)
    assert not compiler.asked


class _Kept:
    """Kernels of programs over a GPU that does nothing."""

    def __init__(self, gpu: Any, kept: int) -> None:
        module = importlib.import_module("bamquery.engine.cuda.pipeline.program_kernels")
        self.cuda, self.stream, self.code = gpu.session.gpu.cuda, object(), []
        gpu.session.gpu.load_compiled = self._load
        self.kernels = module.ProgramKernels(gpu.session.gpu, gpu.session.lock, self.stream, kept)

    def _load(self, compiled: CompiledKernel, name: str) -> Any:
        from weakref import ref

        from bamquery.driver.gpu.device import GpuKernel
        from tests.unit.engine.cuda_scan.fake_gpu import FakeCode

        kernel = GpuKernel(name, None, (), FakeCode())
        self.code.append(ref(kernel.code))
        return kernel

    def loaded(self) -> list[bool]:
        gc.collect()
        return [one() is not None for one in self.code]


@pytest.fixture
def kept(gpu: Any, compiler: Compiler) -> _Kept:
    compiler.holds = lambda text: False
    found = _Kept(gpu, 2)
    for text in "ab":
        found.kernels.compilation(text)
    compiler.finish()
    return found


def test_kernels_that_were_used_last_are_kept(kept: _Kept, compiler: Compiler) -> None:
    a, b = kept.kernels.ready("a"), kept.kernels.ready("b")
    assert kept.kernels.ready("a").kernel is a.kernel
    kept.kernels.compilation("c")
    assert kept.kernels.peek("b") is None
    assert kept.kernels.peek("a").kernel is a.kernel
    assert (a.compiled_s > 0, kept.kernels.ready("a").compiled_s) == (True, 0.0)
    assert b.kernel.code is not None


def test_an_error_is_told_once_and_compiled_again(kept: _Kept, compiler: Compiler) -> None:
    """Not by those who would take any kernel."""
    compiler.fails = True
    kept.kernels.compilation("wrong")
    compiler.finish()
    assert kept.kernels.peek("wrong") is None
    with pytest.raises(KernelError, match="does not compile"):
        kept.kernels.ready("wrong")
    compiler.fails = False
    assert kept.kernels.ready("wrong") is None, "it is compiled again"
    compiler.finish()
    assert kept.kernels.ready("wrong") is not None


def test_code_stays_while_launches_may_need_it(kept: _Kept, compiler: Compiler) -> None:
    """Neither who has a kernel nor what the stream was given loses it."""
    mine = kept.kernels.ready("a")
    kept.kernels.ready("b")
    for text in "cd":
        kept.kernels.compilation(text)
        compiler.finish()
    kept.cuda.busy_streams.add(kept.stream)
    kept.kernels.ready("c")
    assert kept.loaded() == [True, True, True], "a launch of b may be waiting"
    kept.kernels.ready("d")
    kept.cuda.busy_streams.clear()
    assert kept.loaded() == [True, True, True, True], "nobody has looked since"
    kept.kernels.compilation("e")
    compiler.finish()
    kept.kernels.ready("e")
    assert kept.loaded() == [True, False, False, True, True], "a is held"
    del mine
    kept.kernels.compilation("f")
    compiler.finish()
    kept.kernels.ready("f")
    assert kept.loaded()[:2] == [False, False]
