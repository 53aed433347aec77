"""Programs against the operators: the same values, or none."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery import _native
from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.pipeline import native_program
from bamquery.engine.cpu.pipeline.compiled_aggregates import CompiledAggregates
from bamquery.engine.cpu.pipeline.compiled_expressions import _compile, compiled_columns, compiled_mask
from bamquery.engine.pipeline.instructions import Operation
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Literal
from tests.unit.engine.cpu.pipeline.expressions import (
    BOOL,
    DATE,
    DOUBLE,
    LONG,
    MOMENT,
    PRICE,
    TIME,
    WIDE,
    batches,
    column_of,
    conditions,
    expressions_of_type,
    written,
)
from tests.unit.shared_threads import by_each

_TEXT = pa.large_string()
_KEYS = (
    (column_of(BOOL, 0), column_of(pa.int8(), 1)),
    (column_of(pa.int8(), 1), column_of(DATE, 0)),
    (Call("date_part", (Literal(pa.scalar("hour", _TEXT)), column_of(MOMENT, 0)), LONG), column_of(TIME, 1)),
    (Call("dayname", (column_of(DATE, 0),), _TEXT), Call("monthname", (column_of(MOMENT, 1),), _TEXT)),
    (
        Call(
            "case",
            (
                *(column_of(BOOL, 0), Literal(pa.scalar("a", _TEXT))),
                *(column_of(BOOL, 1), Literal(pa.scalar(None, _TEXT))),
                Literal(pa.scalar("a", _TEXT)),
            ),
            _TEXT,
        ),
        column_of(LONG, 0),
    ),
)
"""Groups' keys, such as programs may find and others."""


@settings(max_examples=400, deadline=None)
@given(batches(), st.data())
def test_expressions_have_the_operators_values(batch: pa.RecordBatch, data: st.DataObject) -> None:
    """Of every type, nested; where an operator has an error, so has the program's way."""
    kinds = data.draw(
        st.lists(
            st.sampled_from([DOUBLE, LONG, pa.int32(), PRICE, BOOL, DATE, MOMENT]), min_size=1, max_size=3
        )
    )
    expressions = [data.draw(expressions_of_type(kind, 3)) for kind in kinds]
    try:
        wanted = evaluate_columns(expressions, batch)
    except ExecutionError:
        with pytest.raises(ExecutionError):
            compiled_columns(expressions, batch)
        return
    found = compiled_columns(expressions, batch)
    assert [column.type for column in found] == [column.type for column in wanted]
    assert written(found) == written(wanted)


@settings(max_examples=200, deadline=None)
@given(batches(), st.data())
def test_aggregates_have_the_operators_values(batch: pa.RecordBatch, data: st.DataObject) -> None:
    """Sums, counts, means and extremes, filtered too, with and without keys."""
    keys = data.draw(st.sampled_from([(), *(kept[:n] for kept in _KEYS for n in (1, 2))]))
    calls = []
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(
            st.sampled_from([pa.int8(), pa.int32(), LONG, DOUBLE, PRICE, DATE, pa.float32(), WIDE])
        )
        names = ["count", "min", "max"] if kind == DATE else ["count", "sum", "avg", "min", "max"]
        name = data.draw(st.sampled_from([*names, "count_star"]))
        own = {"count": LONG, "count_star": LONG, "avg": DOUBLE, "min": kind, "max": kind}
        total = DOUBLE if pa.types.is_floating(kind) else pa.decimal128(38, getattr(kind, "scale", 0))
        depth = data.draw(st.integers(0, 1))
        argument = () if name == "count_star" else (data.draw(expressions_of_type(kind, depth)),)
        kept = data.draw(st.none() | conditions(1))
        calls.append(AggregateCall(name, argument, own.get(name, total), filter=kept))

    def answer(programs: bool) -> list[list[str]] | type[ExecutionError]:
        aggregation = CpuAggregation(keys, calls, programs=programs)
        halves = [batch.slice(0, batch.num_rows // 2), batch.slice(batch.num_rows // 2)]
        try:
            merged = aggregation.merge([aggregation.partial(half) for half in halves])
            found = written(aggregation.final(merged).columns)
        except ExecutionError:
            return ExecutionError
        for column, call in zip(found[len(keys) :], calls, strict=True):
            if call.function in ("min", "max"):  # of equal zeros a program has the first, numpy the last one
                column[:] = ["0.0" if value == "-0.0" else value for value in column]
        return found

    assert answer(programs=True) == answer(programs=False)


@pytest.mark.parametrize("rows", [1, 1023, 5000])
def test_groups_of_small_numbers_are_those_of_the_operators(rows: int) -> None:
    """Ranges that grow on both sides, nulls, more groups than have four sums each, and then too many."""
    random = np.random.default_rng(rows)
    places = np.arange(rows) * (-1) ** np.arange(rows)
    small = pa.array(places // 4, LONG, mask=random.random(rows) < 0.1)
    flags = pa.array(random.random(rows) < 0.5, BOOL, mask=random.random(rows) < 0.1)
    wide = pa.array(random.integers(-(2**63), 2**63 - 1, rows), LONG)
    batch = pa.record_batch([small, flags, wide, pa.array(random.random(rows))], ["s", "f", "w", "x"])
    numbers, truths, any_number = (ColumnRef(i, str(i), batch.column(i).type) for i in range(3))
    values = ColumnRef(3, "x", DOUBLE)
    calls = [
        AggregateCall("avg", (values,), DOUBLE),
        AggregateCall("sum", (numbers,), pa.decimal128(38, 0)),
        AggregateCall("min", (values,), DOUBLE, filter=truths),
        AggregateCall("count_star", (), LONG, filter=truths),
        AggregateCall("stddev_samp", (values,), DOUBLE),
    ]
    for keys in ((numbers,), (numbers, truths), (truths,), (any_number,), (truths, any_number)):
        for some in (calls, calls[:4], calls[:1]):
            answers = []
            for programs in (True, False):
                aggregation = CpuAggregation(keys, some, programs=programs)
                answers.append(written(aggregation.final(aggregation.partial(batch)).columns))
            assert answers[0] == answers[1]


def test_which_keys_are_grouped_by_a_program() -> None:
    """Few small numbers are, others as soon as they are seen are not."""
    batch = pa.record_batch([pa.array([1, 2, 1], LONG), pa.array([0, 2**40, 0], LONG)], ["a", "b"])
    for column, few in ((0, True), (1, False)):
        keys = (ColumnRef(column, "k", LONG),)
        compiled = CompiledAggregates((), (), keys)
        found = compiled.group(batch)
        assert (found is not None) == few
        if found is not None:
            assert found[0].keys[0].to_pylist() == [1, 2]


def test_what_does_not_fit_64_bits_is_computed_by_the_operators() -> None:
    """A product of 20 digits; after two chunks the program is not tried again."""
    batch = pa.record_batch([pa.array([Decimal("99999999999.99")], PRICE)], ["p"])
    price = ColumnRef(0, "p", PRICE)
    product = Call("multiply", (price, price), pa.decimal128(30, 4))
    for _ in range(3):
        (found,) = compiled_columns([product], batch)
        assert found.to_pylist() == [Decimal("99999999999.99") ** 2]
    program, _ = _compile((product,))
    assert program is not None
    assert program.is_given_up


def test_an_error_in_a_branch_that_is_not_taken_is_none() -> None:
    """The program fails, and the operators look at the rows that count."""
    batch = pa.record_batch([pa.array([2**62, 1], LONG)], ["i"])
    number = ColumnRef(0, "i", LONG)
    small = Call("less", (number, Literal(pa.scalar(10, LONG))), BOOL)
    doubled = Call("add", (number, Call("add", (number, number), LONG)), LONG)
    (found,) = compiled_columns([Call("case", (small, doubled, number), LONG)], batch)
    assert found.to_pylist() == [2**62, 3]


def test_a_planted_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests would see it if a program's `<` were its `<=`."""
    wrong = {Operation.LESS: Operation.LESS_EQUAL}
    numbers = native_program._numbers
    monkeypatch.setattr(
        native_program,
        "_numbers",
        lambda step: (wrong.get(step.operation, step.operation), *numbers(step)[1:]),
    )
    batch = pa.record_batch([pa.array([1, 2, 3], LONG)], ["i"])
    three = Call("less", (ColumnRef(0, "i", LONG), Literal(pa.scalar(3, LONG))), BOOL)
    _compile.cache_clear()
    mask = compiled_mask(three, batch)
    _compile.cache_clear()
    assert mask is not None
    assert mask.to_pylist() != evaluate_columns([three], batch)[0].to_pylist()


def test_many_rows_and_many_groups_are_those_of_numpy() -> None:
    """Vectors, a last one that is short, and sums that leave 64 bits."""
    random = np.random.default_rng(1)
    rows = 5_000
    codes = random.integers(0, 700, rows).astype(np.int32)
    values = random.integers(-(2**62), 2**62, rows)
    program = _native.Program(
        np.array([[Operation.LOAD, 0, 0, 0, 0, 0, 0]]),
        ["int64"],
        np.array([[1, 0, -1], [3, 0, -1], [0, -1, -1]]),
        [],
    )
    (_, _, sums), (counts, least, _), _ = program.aggregate([(values, None, 0)], rows, codes, 700)
    for group in range(700):
        of_group = values[codes == group]
        assert counts[group] == len(of_group)
        if len(of_group):
            assert least[group] == of_group.min()
        low, high = (int(word) for word in sums[group])
        assert high * 2**64 + low % 2**64 == sum(map(int, of_group))


@pytest.mark.parametrize("order", ["of groups", "nearly", "none"])
@pytest.mark.parametrize("most", [10**6, 2**40, 2**62])
def test_groups_are_shared(order: str, most: int) -> None:
    """Parts of rows have states of their own, of their groups or of all; sums have one word or two."""
    random = np.random.default_rng(5)
    rows, groups = 400_003, 90_000
    numbers = np.sort(random.integers(0, groups, rows))
    if order == "nearly":
        numbers = np.clip(numbers + random.integers(-300, 300, rows), 0, groups - 1)
    elif order == "none":
        random.shuffle(numbers)
    codes = numbers.astype(np.int32)
    # Those of a part only are large, so that some parts have sums of two words.
    values = np.where(np.arange(rows) < rows // 3, 1, most) - random.integers(0, most, rows)
    bits = np.packbits(random.random(rows) < 0.9, bitorder="little")
    program = _native.Program(
        np.array([[Operation.LOAD, 0, 0, 0, 0, 0, 0]]),
        ["int64"],
        np.array([[kind, 0, -1] for kind in (1, 0, 3, 4)] + [[0, -1, -1]]),
        [],
    )
    alone, *shared = by_each(lambda: program.aggregate([(values, bits, 0)], rows, codes, groups))
    kept = np.unpackbits(bits, count=rows, bitorder="little").astype(bool)
    assert np.array_equal(alone[4][0], np.bincount(codes, minlength=groups))
    assert np.array_equal(alone[1][0], np.bincount(codes[kept], minlength=groups))
    of_rows = np.zeros(groups, object)
    np.add.at(of_rows, codes[kept], values[kept].astype(object))
    for states in (alone, *shared):
        for state, other in zip(states, alone, strict=True):
            assert np.array_equal(state[0], other[0])
            assert np.array_equal(state[1], other[1])
        sums = states[0][2]
        if sums.ndim == 2:
            sums = sums[:, 1].astype(object) * 2**64 + sums[:, 0].astype(np.uint64).astype(object)
        assert sums.tolist() == of_rows.tolist()


_LOAD = [Operation.LOAD, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("steps", "inputs", "aggregates", "outputs"),
    [
        ([[99, 0, 0, 0, 0, 0, 0]], [], [], []),
        ([[Operation.LOAD, 0, 0, 0, 0, 1, 0]], ["int64"], [], []),
        ([[Operation.LOAD, 0, 0, 0, 0, -1, 0]], ["int64"], [], []),
        ([_LOAD], ["uint64"], [], []),
        ([[Operation.ADD, 1, 0, 0, 0, 0, 0]], [], [], []),
        ([_LOAD, [Operation.ADD, 0, 0, 0, 0, 0, 0]], ["int64"], [], []),
        ([_LOAD, [Operation.AND, 1, 0, 0, 0, 0, 0]], ["int64"], [], []),
        ([_LOAD, [Operation.ADD, 1, 0, 7, 0, 0, 0]], ["int64"], [], []),
        ([_LOAD, [Operation.FLOOR_DIVIDE, 1, 0, 0, 0, 0, 0]], ["int64"], [], []),
        ([_LOAD, [Operation.FLOOR_REMAINDER, 1, 0, 0, 0, 0, 0]], ["int64"], [], []),
        ([_LOAD, [Operation.DECIMAL_TO_DOUBLE, 1, 0, 0, 0, 23, 0]], ["int64"], [], []),
        ([[Operation.CONSTANT, 0, 0, 0, 0, 1, 0], _LOAD], ["int64"], [], []),
        ([_LOAD], ["int64"], [[9, 0, -1]], []),
        ([_LOAD], ["int64"], [[1, -1, -1]], []),
        ([_LOAD], ["int64"], [[1, 3, -1]], []),
        ([_LOAD], ["int64"], [[1, 0, 0]], []),
        ([_LOAD], ["int64"], [], [4]),
    ],
)
def test_impossible_programs_are_refused(
    steps: list[list[int]], inputs: list[str], aggregates: list[list[int]], outputs: list[int]
) -> None:
    """Before anything runs."""
    with pytest.raises(ValueError, match=r"."):
        _native.Program(
            np.array(steps, np.int64), inputs, np.array(aggregates, np.int64).reshape(-1, 3), outputs
        )


def test_arguments_that_do_not_fit_are_refused() -> None:
    """Columns and codes that are too short, codes of no group, vectors that are not there."""
    program = _native.Program(np.array([_LOAD]), ["int64"], np.array([[1, 0, -1]]), [0])
    values, codes = np.arange(8), np.zeros(8, np.int32)
    assert program.aggregate([(values, None, 0)], 8, codes, 1) is not None
    out, bits = bytearray(64), bytearray(1)
    for columns, rows, own, groups in (
        ([(values, None, 0)], 9, np.zeros(9, np.int32), 1),
        ([(values, None, 1)], 8, codes, 1),
        ([(values, None, -1)], 8, codes, 1),
        ([(values, bytes(0), 0)], 8, codes, 1),
        ([], 8, codes, 1),
        ([(values, None, 0)], 8, codes[:7], 1),
        ([(values, None, 0)], 8, codes + 1, 1),
        ([(values, None, 0)], 8, codes - 1, 1),
        ([(values, None, 0)], -1, None, 1),
        ([(values, None, 0)], 8, None, 0),
    ):
        with pytest.raises(ValueError, match=r"."):
            program.aggregate(columns, rows, own, groups)
    for columns, rows, own in (
        ([(values, None, 0)], 8, codes[:7]),
        ([(values, None, 0)], 9, np.zeros(9, np.int32)),
        ([], 8, codes),
    ):
        with pytest.raises(ValueError, match=r"."):
            program.group(columns, rows, own)
    without_keys = _native.Program(np.array([_LOAD]), ["int64"], np.array([[1, 0, -1]]), [])
    with pytest.raises(ValueError, match="no keys"):
        without_keys.group([(values, None, 0)], 8, None)
    with pytest.raises(ValueError, match="do not fit"):
        program.evaluate([(values, None, 0)], 8, ["int64"], [out[:63]], [bits])
    with pytest.raises(ValueError, match="bitmap"):
        program.evaluate([(values, None, 0)], 8, ["int64"], [out], [bytearray(0)])
    with pytest.raises(ValueError, match="another kind"):
        program.evaluate([(values, None, 0)], 8, ["bool"], [out], [bits])
    with pytest.raises(ValueError, match="no condition"):
        program.select([(values, None, 0)], 8)


def test_batches_of_vectors_that_a_column_has_not_are_refused() -> None:
    """Or whose numbers are not as many as the batches; those that it has may be some of its vectors."""
    program = _native.Program(np.array([_LOAD]), ["int64"], np.array([[3, 0, -1], [4, 0, -1]]), [0])
    parameters = np.zeros(3 * 16, np.uint8)
    for vector in range(3):  # no bits a row: all are the lowest value
        parameters[16 * vector + 8 : 16 * vector + 16] = np.array([vector + 1], np.int64).view(np.uint8)
    lengths, held = np.zeros(3, np.int64), np.array([2, 5, 9])
    column = (np.zeros(64, np.uint8), lengths, parameters, 10 * 1024, 1, 0, held)

    def run(*vectors: int, counts: int | None = None) -> tuple[int, int]:
        sizes = np.full(len(vectors) if counts is None else counts, 1024)
        batches = (sizes, None, np.array(vectors))
        states = program.aggregate([column], int(sizes.sum()), None, 1, batches)
        assert states is not None
        return int(states[0][1][0]), int(states[1][1][0])

    assert run(2, 5, 9) == (1, 3)
    assert run(5) == (2, 2)
    assert run(2, 9) == (1, 3)
    for vectors in ((2, 5, 10), (1,), (5, 2), (3,)):
        with pytest.raises(ValueError, match="no such vector"):
            run(*vectors)
    with pytest.raises(ValueError, match="not as many as batches"):
        run(2, 5, counts=1)
    payload, _, _, rows, *rest = column
    for other in (
        (payload, lengths[1:], parameters, rows, *rest),
        (payload, lengths - 1, parameters, rows, *rest),
        (payload, lengths, parameters[16:], rows, *rest),
        (payload, lengths, parameters, 8 * 1024, *rest),
        (payload, lengths, parameters, -1, *rest),
    ):
        column = other
        with pytest.raises(ValueError, match=r"."):
            run(2, 5, 9)
