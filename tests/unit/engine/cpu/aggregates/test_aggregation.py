"""Aggregates of rows in pieces: states of chunks, merged in any way, give DuckDB's answer for all of them."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation, CpuGroups, call_inputs
from bamquery.plan.expressions import AggregateCall, ColumnRef, Literal, SortKey
from tests.conformance.harness import assert_same
from tests.oracle import ask

ROWS = 500
DOUBLE, TEXT = pa.float64(), pa.large_string()
DECIMAL = pa.decimal128(12, 3)


def _table() -> pa.Table:
    """Columns of few values, one in six null; key 3 has nulls only."""
    choose = random.Random(3)
    keys = choose.choices(range(12), k=ROWS)

    def column(kind: pa.DataType, values: list[object]) -> pa.Array:
        drawn = [None if key == 3 or choose.random() < 1 / 6 else choose.choice(values) for key in keys]
        return pa.array(drawn, kind)

    return pa.table(
        {
            "k": pa.array(keys, pa.int32()),
            "i": column(pa.int64(), [5, -3, 0, 7, 1000, 2]),
            "x": column(DOUBLE, [0.5, -2.25, 3.0, 1e3, 7.5]),
            "y": column(DOUBLE, [1.0, 2.0, -8.5, 100.0]),
            "n": column(DOUBLE, [float("nan"), float("inf"), -0.0, 0.0, 4.5]),
            "m": column(DECIMAL, [Decimal(n) / 1000 for n in (1500, -2, 0, 999_999)]),
            "s": column(TEXT, ["a", "bb", "", "é"]),
            "t": column(pa.timestamp("us"), [0, 1, -1, 86_400_000_000]),
            "row": pa.array(range(ROWS), pa.int64()),
        }
    )


TABLE = _table()
COLUMNS = {field.name: ColumnRef(place, field.name, field.type) for place, field in enumerate(TABLE.schema)}
BY_ROW = (SortKey(COLUMNS["row"]),)
BACK = (SortKey(COLUMNS["i"], descending=True, nulls_first=True), SortKey(COLUMNS["row"]))


def _call(
    function: str,
    columns: str,
    kind: pa.DataType,
    *,
    parameter: object = None,
    order: tuple[SortKey, ...] = (),
) -> AggregateCall:
    constant = None
    if parameter is not None:
        constant = Literal(pa.scalar(parameter, TEXT if isinstance(parameter, str) else DOUBLE))
    arguments = tuple(COLUMNS[name] for name in columns)
    return AggregateCall(function, arguments, kind, order=order, parameter=constant)


CALLS = [
    (_call("sem", "x", DOUBLE), "sem(x)"),
    (_call("skewness", "x", DOUBLE), "skewness(x)"),
    (_call("kurtosis", "x", DOUBLE), "kurtosis(x)"),
    (_call("kurtosis_pop", "x", DOUBLE), "kurtosis_pop(x)"),
    (_call("product", "y", DOUBLE), "product(y)"),
    (_call("bit_and", "i", pa.int64()), "bit_and(i)"),
    (_call("bit_or", "i", pa.int64()), "bit_or(i)"),
    (_call("bit_xor", "i", pa.int64()), "bit_xor(i)"),
    *(
        (_call(name, "s" + by, TEXT), f"{name}(s, {by} ORDER BY row)")
        for name in ("arg_min", "arg_max", "arg_min_null", "arg_max_null")
        for by in "inmt"
    ),
    *(
        (_call(name, "xy", DOUBLE), f"{name}(x, y)")
        for name in ("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept")
    ),
    *(
        (_call(name, "xy", DOUBLE), f"{name}(x, y)")
        for name in ("regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy")
    ),
    (_call("regr_count", "xy", pa.uint32()), "regr_count(x, y)"),
    *(
        (_call(name, column, COLUMNS[column].type, parameter=share), f"{name}({column}, {share}::DOUBLE)")
        for name, columns in (("quantile_cont", "xnmt"), ("quantile_disc", "ixnmst"))
        for column in columns
        for share in (0.0, 0.3, 0.5, 1.0, -0.25)
    ),
    *((_call("mode", column, COLUMNS[column].type), f"mode({column} ORDER BY row)") for column in "ins"),
    *((_call("entropy", column, DOUBLE), f"entropy({column})") for column in "ins"),
    (_call("mad", "x", DOUBLE), "mad(x)"),
    (_call("mad", "m", DECIMAL), "mad(m)"),
    (_call("string_agg", "s", TEXT, parameter="--"), "string_agg(s, '--' ORDER BY row)"),
    (
        _call("string_agg", "s", TEXT, parameter="", order=BACK),
        "string_agg(s, '' ORDER BY i DESC NULLS FIRST, row)",
    ),
    *(
        (_call(name, "s", TEXT, order=BACK), f"{name}(s ORDER BY i DESC NULLS FIRST, row)")
        for name in ("first", "last", "any_value")
    ),
    (_call("arg_max", "sx", TEXT, order=BACK), "arg_max(s, x ORDER BY i DESC NULLS FIRST, row)"),
]


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def _answer(call: AggregateCall, keys: list[ColumnRef]) -> pa.Table:
    """The groups by key, from states of uneven chunks that are merged, split and merged again."""
    aggregation = CpuAggregation(keys, [call])
    (batch,) = TABLE.combine_chunks().to_batches()
    sizes = [0, 1, 7, 64, 31, 0, 150, 2, ROWS]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    states = [
        aggregation.partial(batch.slice(start, size)) for start, size in zip(starts, sizes, strict=True)
    ]
    early = pa.Table.from_batches([aggregation.to_arrow(state) for state in states[:4] if state.groups])
    joined = aggregation.from_arrow(early.combine_chunks().to_batches()[0])
    first = aggregation.merge([joined], repeated=True)
    state = aggregation.merge([first, aggregation.merge(states[4:])])
    places: list[CpuGroups] = [state]
    if keys:
        half, other = aggregation.split(state, 2, 0, apart=True)
        places = [*aggregation.split(half, 4, 1), *aggregation.split(other, 4, 2)]
    frames = [aggregation.final(aggregation.merge([place])) for place in places]
    answer = pa.Table.from_batches(frames)
    return answer.sort_by(answer.column_names[0]) if keys else answer


@pytest.mark.parametrize(("call", "sql"), CALLS, ids=[sql for _, sql in CALLS])
def test_pieces(oracle: duckdb.DuckDBPyConnection, call: AggregateCall, sql: str) -> None:
    whole = ask(oracle, f"SELECT {sql} FROM given", given=TABLE)
    assert_same(_answer(call, []), whole, 1e-9)
    groups = ask(oracle, f"SELECT k, {sql} FROM given GROUP BY k ORDER BY k", given=TABLE)
    assert_same(_answer(call, [COLUMNS["k"]]), groups, 1e-9)


@pytest.mark.parametrize(
    ("column", "total"), [("i", pa.decimal128(38, 0)), ("x", DOUBLE), ("m", pa.decimal128(38, 3))]
)
def test_sums_and_counts_beside_an_average_are_those_that_stand_alone(
    column: str, total: pa.DataType
) -> None:
    argument = (COLUMNS[column],)
    calls = [
        AggregateCall("sum", argument, total),
        AggregateCall("count", argument, pa.int64()),
        AggregateCall("avg", argument, DOUBLE),
    ]
    (batch,) = TABLE.combine_chunks().to_batches()
    together = CpuAggregation([COLUMNS["k"]], calls)
    columns = together.final(together.partial(batch)).columns
    for place, call in enumerate(calls, start=1):
        alone = CpuAggregation([COLUMNS["k"]], [call])
        assert alone.final(alone.partial(batch)).column(1).equals(columns[place])


def test_calls_over_one_state_share_it() -> None:
    calls = [
        _call("corr", "xy", DOUBLE),
        _call("regr_slope", "xy", DOUBLE),
        _call("corr", "yx", DOUBLE),
        _call("quantile_cont", "x", DOUBLE, parameter=0.5),
        _call("quantile_disc", "x", DOUBLE, parameter=0.25),
        _call("mode", "x", DOUBLE),
        _call("mode", "x", DOUBLE, order=BACK),
        _call("stddev_samp", "x", DOUBLE),
        _call("var_pop", "x", DOUBLE),
    ]
    batch = TABLE.to_batches()[0]
    together = CpuAggregation([COLUMNS["k"]], calls)
    state = together.merge([together.partial(batch.slice(0, 200)), together.partial(batch.slice(200))])
    assert len(state.aggregates) == 5
    again = together.from_arrow(together.to_arrow(state))
    for given in (state, again):
        found = together.final(given)
        for place, call in enumerate(calls):
            alone = CpuAggregation([COLUMNS["k"]], [call])
            pieces = [alone.partial(batch.slice(0, 200)), alone.partial(batch.slice(200))]
            assert found.column(1 + place).equals(alone.final(alone.merge(pieces)).column(1)), call


def test_one_value_over_and_over_has_no_spread() -> None:
    """Three times 0.1 is more than 0.3, and its third more than 0.1: the mean is not found that way."""
    batch = pa.RecordBatch.from_pydict({"y": [0.1] * 3 + [math.inf, 0.1], "x": [1.0, 2.0, 3.0, 4.0, 5.0]})
    y, x = (ColumnRef(i, name, pa.float64()) for i, name in enumerate("yx"))
    names = ("regr_syy", "regr_r2", "regr_avgy")
    calls = [AggregateCall(name, (y, x), pa.float64()) for name in names]
    aggregation = CpuAggregation((), calls)

    def answers(rows: pa.RecordBatch) -> list[object]:
        return [column[0].as_py() for column in aggregation.final(aggregation.partial(rows)).columns]

    assert answers(batch.slice(0, 3)) == [0.0, 1.0, 0.1]
    assert answers(batch.slice(2))[2] == math.inf
    assert answers(batch.slice(3))[2] == math.inf


@pytest.mark.parametrize("name", ["min", "max"])
def test_signalling_nans_are_as_others(name: str) -> None:
    """The greatest number, and beside them no other one is lost."""
    random = np.random.default_rng(6)
    values = random.normal(size=(300, 128)).astype(np.float32)
    places = random.integers(0, 128, len(values))
    values[np.arange(len(values)), places] = np.array([0xFF84C316], np.uint32).view(np.float32)
    least = np.where(np.isnan(values), np.float32(np.inf), values).min(axis=1)
    groups = np.repeat(np.arange(len(values)), 128)
    batch = pa.RecordBatch.from_arrays([pa.array(groups), pa.array(values.ravel())], ["k", "x"])
    keys = (ColumnRef(0, "k", pa.int64()),)
    for by, rows, wanted in (
        (keys, batch, least if name == "min" else np.full(len(values), np.nan)),
        ((), batch.slice(128, 128), least[1:2] if name == "min" else np.array([np.nan])),
    ):
        call = AggregateCall(name, (ColumnRef(1, "x", pa.float32()),), pa.float32())
        aggregation = CpuAggregation(by, [call])
        found = np.asarray(aggregation.final(aggregation.partial(rows)).columns[-1])
        np.testing.assert_array_equal(found, wanted.astype(np.float32))


def test_groups_are_split_evenly_and_anew_at_each_level() -> None:
    """Into up to 256 places; what one level has put into one place another level spreads."""
    rows = 1 << 14
    batch = pa.record_batch([pa.array(range(rows), pa.int64())], ["k"])
    aggregation = CpuAggregation([ColumnRef(0, "k", pa.int64())], [])
    state = aggregation.partial(batch)
    for level in range(6):
        pieces = aggregation.split(state, 256, level)
        sizes = [piece.groups for piece in pieces]
        assert sum(sizes) == rows
        assert min(sizes) > 0
        for other in {*range(6)} - {level}:
            assert all(piece.groups for piece in aggregation.split(pieces[7], 4, other))


def test_a_state_alone_is_merged_already() -> None:
    aggregation = CpuAggregation([COLUMNS["k"]], [_call("sem", "x", DOUBLE)])
    state = aggregation.partial(TABLE.to_batches()[0])
    assert aggregation.merge([state]) is state
    again = aggregation.merge([state], repeated=True)
    assert again is not state
    assert aggregation.final(again).equals(aggregation.final(state))


def test_all_keys_of_a_rollup_leave_states_as_they_are() -> None:
    aggregation = CpuAggregation([COLUMNS["k"], COLUMNS["s"]], [_call("sem", "x", DOUBLE)])
    state = aggregation.partial(TABLE.to_batches()[0])
    whole = aggregation.rollup(state, [0, 1], 7)
    assert whole.aggregates is state.aggregates
    assert [key.to_pylist() for key in whole.keys[:2]] == [key.to_pylist() for key in state.keys]
    assert whole.keys[2].to_pylist() == [7] * state.groups
    by_one = aggregation.rollup(state, [0], 8)
    assert by_one.groups == len(set(state.keys[0].to_pylist()))
    assert by_one.keys[1].null_count == by_one.groups


def test_places_that_are_apart_have_memory_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others, and small ones some of which are next to each other, lie in one array, which stays."""
    aggregation = CpuAggregation([COLUMNS["k"]], [_call("mode", "i", pa.int64())])
    state = aggregation.partial(TABLE.to_batches()[0])
    for small, apart in ((0, False), (0, True), (1000, True)):
        monkeypatch.setattr("bamquery.engine.cpu.aggregates.aggregation._SMALL_PIECE", small)
        pieces = aggregation.split(state, 4, 0, apart=apart)
        assert [piece.groups > 1 for piece in pieces].count(True) > 1
        assert sum(piece.groups for piece in pieces) == state.groups
        arrays = {piece.keys[0].buffers()[1].address for piece in pieces if piece.groups}
        assert (len(arrays) > 1) == (apart and not small)


def test_an_average_is_shared_only_with_what_adds_the_same_rows_in_the_same_order() -> None:
    """A sum that goes by itself would be another one, by what is rounded."""
    x = ColumnRef(0, "x", DOUBLE)
    row = (SortKey(ColumnRef(1, "row", pa.int64())),)
    batch = pa.record_batch([[1e16, 1.0, 1.0, -1e16], [3, 0, 1, 2]], ["x", "row"])
    plain, ordered = ((), row)
    totals = {plain: 0.0, ordered: -1e16 + 2.0 + 1e16}
    for first in (plain, ordered):
        for second in (plain, ordered):
            calls = [
                AggregateCall("avg", (x,), DOUBLE, order=first),
                AggregateCall("sum", (x,), DOUBLE, order=second),
            ]
            aggregation = CpuAggregation([], calls, programs=False)
            state = aggregation.partial(batch)
            found = [column[0].as_py() for column in aggregation.final(state).columns]
            assert found == [totals[first] / 4, totals[second]]
            average, total = state.aggregates
            assert (average[0] is total[0]) == (first == second == plain)


def test_a_call_without_arguments_has_a_null_for_each_row() -> None:
    """By which windows know how many there are."""
    rows = call_inputs(AggregateCall("count_star", (), pa.int64()), TABLE.to_batches()[0])
    assert (len(rows), rows.null_count) == (ROWS, ROWS)
