"""Texts of generated kernels, as people would read them: `golden/*.cu`.

Where a text should change, write it anew and read what changed:
`python -m tests.unit.engine.cuda_pipeline.test_golden_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from bamquery.driver.compile.compiler import CompileOptions, KernelText, compile_kernel
from bamquery.driver.compile.kernel_cache import KernelCache
from bamquery.engine.cuda.pipeline.aggregate_text import aggregate_text
from bamquery.engine.cuda.pipeline.program_text import evaluate_text
from bamquery.engine.cuda.pipeline.selection_text import selection_text
from bamquery.engine.pipeline.instructions import AggregateKind, AggregateStep, Input
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.engine.pipeline.outputs import program_of
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal

FOLDER: Final = Path(__file__).parent / "golden"
KEPT: Final = KernelCache(Path(__file__).parents[4] / "build" / "kernels")
BOOL, PRICE = pa.bool_(), pa.decimal128(15, 2)
PRICES: Final = ColumnRef(0, "l_extendedprice", PRICE)
DISCOUNTS: Final = ColumnRef(1, "l_discount", PRICE)
DAYS: Final = ColumnRef(2, "l_shipdate", pa.date32())
PART: Final = ColumnRef(4, "l_partkey", pa.int64())
DISTANCES: Final = ColumnRef(3, "trip_distance", pa.float64())


def _literal(value: Any, kind: pa.DataType) -> Literal:
    return Literal(pa.scalar(value, kind))


def _revenue() -> Expression:
    kept: Any = pa.decimal128(17, 2)
    rest = Call("subtract", (_literal(Decimal("1.00"), kept), DISCOUNTS), kept)
    return Call("multiply", (PRICES, rest), pa.decimal128(32, 4))


def _condition() -> Expression:
    year = Call("date_part", (_literal("year", pa.large_string()), DAYS), pa.int64())
    sides = (
        Call("equal", (year, _literal(1994, pa.int64())), BOOL),
        Call("greater_equal", (DISTANCES, _literal(30.0, pa.float64())), BOOL),
    )
    return Call("and", sides, BOOL)


def _evaluated(expression: Expression, nullable: list[bool]) -> str:
    found = program_of([expression])
    assert found is not None
    return evaluate_text(found[0], [expression.type], nullable).text


def _aggregated(*, own: bool) -> str:
    builder = ProgramBuilder()
    revenue, distance, kept = (builder.add(one) for one in (_revenue(), DISTANCES, _condition()))
    assert revenue is not None
    assert distance is not None
    assert kept is not None
    builder.program.aggregates = [
        AggregateStep(AggregateKind.SUM, revenue.register, kept.register),
        AggregateStep(AggregateKind.COUNT, None, None),
        AggregateStep(AggregateKind.GREATEST_DOUBLE, distance.register, None),
    ]
    return aggregate_text(builder.program, [False, False, True, False], own=own)[0].text


def _selected() -> str:
    builder = ProgramBuilder()
    kept = builder.add(_condition())
    assert kept is not None
    builder.program.inputs.append(Input(PART, PART.type))
    return selection_text(builder.program, [kept.register], [2], [False, False, True]).text


TEXTS: Final[dict[str, Callable[[], str]]] = {
    "revenue": lambda: _evaluated(_revenue(), [False, True]),
    "condition": lambda: _evaluated(_condition(), [False, False]),
    "aggregates_by_thread": lambda: _aggregated(own=True),
    "aggregates_by_group": lambda: _aggregated(own=False),
    "selection": _selected,
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_generated_kernel_reads_as_it_did(name: str) -> None:
    assert TEXTS[name]() == (FOLDER / f"{name}.cu").read_text()


@pytest.mark.whole
@pytest.mark.parametrize("name", TEXTS)
def test_a_generated_kernel_compiles_without_a_warning(name: str) -> None:
    compiled = compile_kernel(KernelText(name, TEXTS[name]()), CompileOptions("sm_90"), KEPT)
    assert compiled.log == ""
    assert compiled.code.startswith(b"\x7fELF")


if __name__ == "__main__":
    for written, text in TEXTS.items():
        (FOLDER / f"{written}.cu").write_text(text())
