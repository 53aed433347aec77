"""Groups of no value, of one and of few, and of one value over and over: DuckDB's answers, and states'."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.aggregate_families import AGGREGATES
from bamquery.engine.cpu.aggregates.accumulator import concatenate_state_columns, count_by_group, sum_by_group
from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
from bamquery.engine.cpu.aggregates.registry import accumulator_of
from bamquery.engine.cpu.aggregates.string_agg import StringAgg
from bamquery.errors import CancelledError
from bamquery.plan.expressions import AggregateCall, ColumnRef
from bamquery.statement_context.cancellation import use_cancellation_check
from tests.conformance.harness import assert_same
from tests.oracle import ask

DOUBLE = pa.float64()
PAIRS = [name for name, (family, _) in AGGREGATES.items() if family == "pairs" and name != "regr_count"]
SPREADS = [name for name, (family, _) in AGGREGATES.items() if family in {"shape", "variance"}]
K, Y, X = ColumnRef(0, "k", pa.int64()), ColumnRef(1, "y", DOUBLE), ColumnRef(2, "x", DOUBLE)


def _groups(sizes: range) -> pa.Table:
    """Of as many rows as the key says; of key 0 there is a row of nulls."""
    rows = [(0, None, None)]
    for size in sizes:
        rows += [(size, i * i / 4 - 1, 3.0 - i) for i in range(size)]
        rows += [(size + 10, i / 2, 7.0) for i in range(size)]  # all of one x
        rows += [(size + 20, 0.1, i / 2) for i in range(size)]  # and of one y
    keys, ys, xs = zip(*rows, strict=True)
    return pa.table({"k": pa.array(keys), "y": pa.array(ys, DOUBLE), "x": pa.array(xs, DOUBLE)})


@pytest.mark.parametrize("name", [*PAIRS, *SPREADS])
def test_few_values(name: str) -> None:
    table = _groups(range(1, 6))
    arguments = (Y, X) if name in PAIRS else (Y,)
    (batch,) = table.combine_chunks().to_batches()
    aggregation = CpuAggregation([K], [AggregateCall(name, arguments, DOUBLE)])
    pieces = [batch.slice(start, 3) for start in range(0, batch.num_rows, 3)]
    sql = f"SELECT k, {name}({', '.join(a.name for a in arguments)}) AS v FROM t GROUP BY k ORDER BY k"
    with duckdb.connect() as oracle:
        wanted = ask(oracle, sql, t=table)
    for state in (
        aggregation.partial(batch),
        aggregation.merge([aggregation.partial(piece) for piece in pieces]),
    ):
        found = pa.Table.from_batches([aggregation.final(state)]).rename_columns(["k", "v"]).sort_by("k")
        assert_same(found, wanted, 1e-9)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("regr_avgy", 0.1), *((name, 0.0) for name in ("var_pop", "stddev_pop", "sem", "regr_syy"))]
    + [(name, None) for name in ("skewness", "kurtosis", "kurtosis_pop")],
)
def test_states_of_one_value_have_its_mean_and_no_spread(name: str, wanted: float | None) -> None:
    """However many rows each is of: to weigh the value itself would round."""
    arguments = (Y, X) if name.startswith("regr") else (Y,)
    aggregation = CpuAggregation([], [AggregateCall(name, arguments, DOUBLE)])
    for rows in range(1, 30):
        batches = [
            pa.record_batch([[0] * size, [0.1] * size, [float(i) for i in range(size)]], ["k", "y", "x"])
            for size in (1, 3, rows)
        ]
        state = aggregation.merge([aggregation.partial(batch) for batch in batches])
        assert aggregation.final(state).column(0).to_pylist() == [wanted]


def test_an_infinite_value_is_a_mean_and_alone_has_no_spread() -> None:
    def answer(name: str, values: list[float]) -> list[Any]:
        arguments = (Y, X) if name.startswith("regr") else (Y,)
        aggregation = CpuAggregation([], [AggregateCall(name, arguments, DOUBLE)])
        columns = [[0] * len(values), values, [float(i) for i in range(len(values))]]
        return (
            aggregation.final(aggregation.partial(pa.record_batch(columns, ["k", "y", "x"])))
            .column(0)
            .to_pylist()
        )

    assert answer("regr_avgy", [1.0, math.inf]) == [math.inf]
    assert answer("regr_avgy", [-math.inf, 1.0]) == [-math.inf]
    for name in ("var_pop", "stddev_pop", "sem"):
        assert answer(name, [math.inf]) == [0.0]


@pytest.mark.parametrize("name", ["bit_and", "bit_or", "bit_xor"])
def test_bits_are_those_of_the_values(name: str) -> None:
    """None is there, or missing, that no value has, or lacks."""
    call = AggregateCall(name, (ColumnRef(0, "i", pa.int64()),), pa.int64())
    aggregation = CpuAggregation([], [call])
    for values in ([4], [4, 6], [-2, -4], [-1, -3], [0]):
        state = aggregation.partial(pa.record_batch([values], ["i"]))
        functions = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
        assert aggregation.final(state).column(0).to_pylist() == [functions[name].reduce(values)]


INTEGER, BOOL = pa.int64(), pa.bool_()
SCANNED = [
    ("sum", DOUBLE, DOUBLE),
    ("avg", DOUBLE, DOUBLE),
    *((name, kind, kind) for name in ("min", "max") for kind in (INTEGER, DOUBLE, BOOL)),
    *((name, BOOL, BOOL) for name in ("bool_and", "bool_or")),
]


@pytest.mark.parametrize(("name", "kind", "answer"), SCANNED)
def test_scans_join_states_as_merging_does(name: str, kind: pa.DataType, answer: pa.DataType) -> None:
    """Those without a value, too; they are what windows run over their rows."""
    accumulator = accumulator_of(AggregateCall(name, (ColumnRef(0, "a", kind),), answer))
    values: list[Any] = {
        INTEGER: [3, -7, 0, None],
        DOUBLE: [2.5, -1.0, math.nan, math.inf, None],
        BOOL: [True, False, None],
    }[kind]
    assert accumulator.scans
    for one in values:
        for other in values:
            states = [
                accumulator.partial(pa.array([v], kind), np.zeros(1, np.int64), 1) for v in (one, other)
            ]
            columns = list(zip(*states, strict=True))
            assert len(columns) == len(accumulator.scans)
            joined = tuple(
                scan(np.asarray(a), np.asarray(b))
                for scan, (a, b) in zip(accumulator.scans, columns, strict=True)
            )
            together = tuple(concatenate_state_columns(column) for column in columns)
            merged = accumulator.merge(together, np.zeros(2, np.int64), 1)
            found, wanted = (accumulator.final(state).to_pylist() for state in (joined, merged))
            assert repr(found) == repr(wanted), (one, other)


def test_sums_and_counts_ask_whether_the_query_was_cancelled() -> None:
    codes = np.array([0, 1, 1])

    def cancelled() -> None:
        raise CancelledError("cancelled")

    for groups in (1, 2):
        with use_cancellation_check(cancelled), pytest.raises(CancelledError):
            sum_by_group(codes // 2 // groups, codes, groups)
        with use_cancellation_check(cancelled), pytest.raises(CancelledError):
            count_by_group(codes, groups)


def test_joined_texts_know_how_many_bytes_are_between_them() -> None:
    assert StringAgg(pa.scalar("é-", pa.large_string())).between == len("é-".encode())


def test_the_entropy_of_one_value_is_no_negative_zero() -> None:
    for keys in ([], [K]):
        aggregation = CpuAggregation(keys, [AggregateCall("entropy", (Y,), DOUBLE)])
        state = aggregation.partial(pa.record_batch([[1, 1], [0.5, 0.5]], ["k", "y"]))
        assert math.copysign(1, aggregation.final(state).columns[-1][0].as_py()) == 1
