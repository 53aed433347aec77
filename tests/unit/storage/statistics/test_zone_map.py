"""Pruning never loses a row, for any type and predicate; and it does prune."""

import gc
import math
import weakref
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.statistics import zone_map
from bamquery.storage.statistics.predicate import RangePredicate
from bamquery.storage.statistics.zone_map import ZoneMap
from tests.selection.effort import effort
from tests.unit.storage.random_columns import ALL_TYPES, column, samples, values, written

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def is_true(array: pa.Array, predicate: RangePredicate) -> np.ndarray:
    """Which rows satisfy the predicate, by pyarrow's own kernels."""
    if predicate.or_null:
        return is_true(array, replace(predicate, or_null=False)) | is_true(
            array, RangePredicate("c", "is_null")
        )
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if predicate.operator == "is_null":
        # pyarrow's is_null of a dictionary's null value differs; decoded arrays have plain nulls.
        return pc.is_null(array).to_numpy(zero_copy_only=False)
    if predicate.operator == "is_not_null":
        return pc.is_valid(array).to_numpy(zero_copy_only=False)
    if predicate.operator == "in":
        found = np.zeros(len(array), np.bool_)
        for value in predicate.values:
            found |= is_true(array, RangePredicate("c", "=", (value,)))
        return found
    (value,) = predicate.values
    if pa.types.is_floating(array.type):
        return floats_are_true(array, predicate.operator, value)
    functions = {
        "=": pc.equal,
        "!=": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }
    return functions[predicate.operator](array, value).fill_null(False).to_numpy(zero_copy_only=False)


def floats_are_true(array: pa.Array, operator: str, value: Any) -> np.ndarray:
    """SQL's order of floats: NaN equals NaN and is greater than every number; -0 equals 0."""
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    number = value.as_py()
    if number is None:
        return np.zeros(len(array), np.bool_)

    def key(x: float) -> tuple[bool, float]:
        return (math.isnan(x), 0.0 if math.isnan(x) else x + 0.0)

    found = []
    for x in array.to_pylist():
        if x is None:
            found.append(False)
            continue
        a, b = key(x), key(number)
        found.append(
            {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]
        )
    return np.array(found, np.bool_) & valid


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
@pytest.mark.long
@settings(deadline=None, max_examples=effort(6, 200))
@given(seed=st.integers(0, 2**32), rows=st.sampled_from([1, 1024, 1025, 3000]))
def test_pruning_never_loses_a_row(type_: Any, seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    array = column(type_, rows, random)
    if random.random() < 0.5 and not pa.types.is_dictionary(type_):
        array = array.take(pc.array_sort_indices(array))
    batch = pa.RecordBatch.from_arrays([array], ["c"])
    strangers = values(type_, 3, random)
    own = [array[int(i)] for i in random.integers(0, rows, 3)]
    operands = [plain(scalar) for scalar in (*own, *strangers)]
    predicates = [RangePredicate("c", operator, (x,)) for operator in COMPARISONS for x in operands]
    predicates += [RangePredicate("c", "in", tuple(operands[:n])) for n in (0, 2, 6)]
    predicates += [RangePredicate("c", "in", tuple(operands * 20))]
    predicates += [replace(predicate, or_null=True) for predicate in predicates[::5]]
    predicates += [RangePredicate("c", "is_null"), RangePredicate("c", "is_not_null")]
    with written([batch]) as fragment:
        for predicate in predicates:
            survivors = fragment.zone_map.surviving_vectors([predicate])
            assert survivors.dtype == np.int64
            needed = np.unique(np.flatnonzero(is_true(array, predicate)) // VECTOR_ROWS)
            assert np.isin(needed, survivors).all(), predicate


def plain(scalar: pa.Scalar) -> pa.Scalar:
    if not isinstance(scalar, pa.DictionaryScalar):
        return scalar
    return scalar.value if scalar.is_valid else pa.scalar(None, scalar.type.value_type)


def zone_map_of(array: pa.Array) -> ZoneMap:
    with written([pa.RecordBatch.from_arrays([array], ["c"])]) as fragment:
        return fragment.zone_map


TEN_VECTORS = zone_map_of(pa.array(np.arange(10 * VECTOR_ROWS)))


def survivors(array: pa.Array, operator: Any, *operands: Any) -> list[int]:
    type_ = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    scalars = tuple(pa.scalar(x, type_) for x in operands)
    return zone_map_of(array).surviving_vectors([RangePredicate("c", operator, scalars)]).tolist()


def test_sorted_integers_prune_to_the_vectors_that_match() -> None:
    array = pa.array(np.arange(10 * VECTOR_ROWS))
    assert survivors(array, "=", 5000) == [4]
    assert survivors(array, "<", 1024) == [0]
    assert survivors(array, "<=", 1024) == [0, 1]
    assert survivors(array, ">", 9 * VECTOR_ROWS - 1) == [9]
    assert survivors(array, ">=", 9 * VECTOR_ROWS - 1) == [8, 9]
    assert survivors(array, "in", 0, 5000, 99_999) == [0, 4]
    assert survivors(array, "=", None) == []
    assert survivors(array, "in", None) == []
    assert survivors(array, "is_null") == []
    assert survivors(array, "is_not_null") == list(range(10))


def test_long_lists_prune_value_by_value() -> None:
    array = pa.array(np.arange(20 * VECTOR_ROWS))
    few = [n * 2 * VECTOR_ROWS + 5 for n in range(10)]
    assert survivors(array, "in", *few) == list(range(0, 20, 2))
    assert survivors(array, "in", *few, *range(-200, 0)) == list(range(0, 20, 2))
    days = pa.array(np.arange(20 * VECTOR_ROWS).astype("datetime64[us]"))
    assert survivors(days, "in", *(np.datetime64(n, "us").item() for n in few)) == list(range(0, 20, 2))


def test_members_prune_by_their_bounds_or_one_by_one() -> None:
    """Numbers one by one, strings by the least and the greatest; of none there is no row."""
    numbers = pa.array(np.arange(4 * VECTOR_ROWS))
    words = pa.array(np.repeat(["apple", "melon", "zebra", None], VECTOR_ROWS), pa.large_string())
    for array, members, alive in (
        (numbers, [5, 3 * VECTOR_ROWS], [0, 3]),
        (numbers, [], []),
        (words, ["b", "n"], [1]),
        (words, ["apple", "zebra"], [0, 1, 2]),
        (words, [], []),
    ):
        predicate = RangePredicate("c", "in", members=pa.array(members, array.type))
        assert zone_map_of(array).surviving_vectors([predicate]).tolist() == alive


def test_unequal_prunes_constant_vectors() -> None:
    array = pa.array(np.repeat([7, 7, 8], VECTOR_ROWS))
    assert survivors(array, "!=", 7) == [2]
    assert survivors(array, "!=", None) == []


@pytest.mark.parametrize("operator", COMPARISONS)
@pytest.mark.parametrize("digits", [15, 18, 19, 38])
def test_decimals_of_any_width_prune_alike(digits: int, operator: Any) -> None:
    units = np.repeat(np.arange(-5, 5), VECTOR_ROWS) * 10 + np.tile(np.arange(VECTOR_ROWS) % 7, 10)
    values = [None if 0 <= i < VECTOR_ROWS else Decimal(int(x)).scaleb(-2) for i, x in enumerate(units)]
    zones = zone_map_of(pa.array(values, pa.decimal128(digits, 2)))
    known = {
        v: [x for x in values[v * VECTOR_ROWS : (v + 1) * VECTOR_ROWS] if x is not None] for v in range(10)
    }
    tests = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
    for unit in range(-55, 55, 3):
        operand = Decimal(unit).scaleb(-2)
        found = zones.surviving_vectors(
            [RangePredicate("c", operator, (pa.scalar(operand, pa.decimal128(digits, 2)),))]
        )
        bounds = [v for v, own in known.items() if own and min(own) <= operand <= max(own)]
        wanted = (
            bounds
            if operator == "="
            else [v for v, own in known.items() if any(getattr(x, tests[operator])(operand) for x in own)]
        )
        assert found.tolist() == wanted


def test_nulls_of_a_last_vector_that_is_not_full() -> None:
    array = pa.array([*range(VECTOR_ROWS), None, None, None], pa.int64())
    assert survivors(array, "is_null") == [1]
    assert survivors(array, "is_not_null") == [0]


def test_conditions_that_nulls_fulfil_keep_vectors_with_nulls() -> None:
    """One null is enough."""
    full, one_null = list(range(VECTOR_ROWS)), [None, *range(1, VECTOR_ROWS)]
    zone_map = zone_map_of(pa.array([*full, *one_null, *[None] * 7], pa.int64()))
    far = RangePredicate("c", ">", (pa.scalar(5000),))
    assert zone_map.surviving_vectors([far]).tolist() == []
    assert zone_map.surviving_vectors([replace(far, or_null=True)]).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("operator", "operands", "or_null", "wanted"),
    [
        ("<", [3 * VECTOR_ROWS], False, [0]),
        ("<", [3 * VECTOR_ROWS], True, [0, 1, 2]),
        ("<", [1500], True, [0, 2]),
        ("<", [None], False, []),
        ("in", range(3 * VECTOR_ROWS), False, []),  # bounds cannot tell
        ("is_null", [], False, [2]),
        ("is_not_null", [], False, [0]),
    ],
)
def test_vectors_all_of_whose_rows_fulfil_a_condition(
    operator: Any, operands: Any, or_null: bool, wanted: list[int]
) -> None:
    """Of numbers, of numbers and one null, and of nulls."""
    numbers = [*range(VECTOR_ROWS), None, *range(VECTOR_ROWS + 1, 2 * VECTOR_ROWS), *[None] * 7]
    zone_map = zone_map_of(pa.array(numbers, pa.int64()))
    scalars = tuple(pa.scalar(x, pa.int64()) for x in operands)
    predicate = RangePredicate("c", operator, scalars, or_null)
    assert np.flatnonzero(zone_map.certain([predicate])).tolist() == wanted
    nothing = RangePredicate("c", "=", (pa.scalar(-1),))
    assert not zone_map.certain([predicate, nothing]).any()
    assert zone_map.certain([]).all()


@pytest.mark.parametrize(("more", "wanted"), [(0, [0, 2]), (1, [0, 1, 2])])
def test_lists_of_up_to_64_values_prune_value_by_value(more: int, wanted: list[int]) -> None:
    """Of longer ones only the least and the greatest tell."""
    array = pa.array(np.repeat([1.0, 5.0, 9.0], VECTOR_ROWS))
    assert survivors(array, "in", 9.0, *[1.0] * (62 + more), 1.0) == wanted


def test_no_statistics_are_read_where_no_vector_is_left() -> None:
    """Each column's once, when they are first asked for."""
    asked = []

    def statistics(name: str) -> pa.StructArray:
        asked.append(name)
        return pa.array([{"min": 1, "max": 5, "null_count": 0}])

    zone_map = ZoneMap(statistics, 10)
    near, far = (RangePredicate(name, "=", (pa.scalar(x),)) for name, x in (("a", 3), ("b", 7)))
    for predicates, wanted in (([near, far], ["a", "b"]), ([near, near], []), ([far, near], [])):
        asked.clear()
        zone_map.possible(predicates)
        assert asked == wanted
    other = replace(far, column="d")
    assert not ZoneMap(statistics, 10).possible([other, near]).any()
    assert asked == ["d"]


def test_predicates_are_a_conjunction() -> None:
    zone_map = zone_map_of(pa.array(np.arange(10 * VECTOR_ROWS)))
    low = RangePredicate("c", ">=", (pa.scalar(3000),))
    high = RangePredicate("c", "<", (pa.scalar(4000),))
    assert zone_map.surviving_vectors([low, high]).tolist() == [2, 3]
    assert zone_map.surviving_vectors([]).tolist() == list(range(10))


@given(st.sets(st.integers(0, 9)), st.integers(-100, 10_300), st.integers(-100, 10_300))
def test_some_vectors_are_pruned_as_all_are(among: set[int], low: int, high: int) -> None:
    vectors = np.array(sorted(among), np.int64)
    bounds = [RangePredicate("c", ">=", (pa.scalar(low),)), RangePredicate("c", "<", (pa.scalar(high),))]
    for predicates in (bounds, bounds[:1], []):
        expected = np.intersect1d(vectors, TEN_VECTORS.surviving_vectors(predicates))
        assert TEN_VECTORS.surviving_of(vectors, predicates).tolist() == expected.tolist()


@pytest.mark.parametrize("step", [1, 3, 20])
def test_each_so_many_vectors(step: int) -> None:
    zones = TEN_VECTORS.column("c")
    for operator, value in (("<", 4000), (">=", 2500), ("=", 5000)):
        predicate = RangePredicate("c", operator, (pa.scalar(value, zones.minimum.type),))  # type: ignore[arg-type]
        assert zones.every(step).possible(predicate).tolist() == zones.possible(predicate)[::step].tolist()


def test_nan_is_the_greatest_number() -> None:
    nan = math.nan
    array = pa.array(np.concatenate([np.full(VECTOR_ROWS, x) for x in (1.0, nan, -1.0)]))
    array = pa.concat_arrays([array, pa.nulls(VECTOR_ROWS, pa.float64())])
    assert survivors(array, "=", nan) == [1]
    assert survivors(array, "!=", nan) == [0, 2]
    assert survivors(array, "<", nan) == [0, 2]
    assert survivors(array, "<=", nan) == [0, 1, 2]
    assert survivors(array, ">", nan) == []
    assert survivors(array, ">=", nan) == [1]
    assert survivors(array, ">", 100.0) == [1]
    assert survivors(array, "<", 0.0) == [2]
    assert survivors(array, "!=", 1.0) == [1, 2]
    assert survivors(array, "in", nan, -1.0) == [1, 2]
    many = [2.0 + n for n in range(zone_map._MOST_VALUES)]
    assert survivors(array, "in", *many, 1.0) == [0]
    assert survivors(array, "in", *many, nan) == [1]
    assert survivors(array, "in", *many, 200.0) == []


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("operand", [0.0, -0.0])
def test_zeros_are_equal(zero: float, operand: float) -> None:
    array = pa.array(np.full(VECTOR_ROWS, zero))
    assert survivors(array, "=", operand) == [0]
    assert survivors(array, "!=", operand) == []
    assert survivors(array, "<", operand) == []
    assert survivors(array, ">", operand) == []
    assert survivors(array, ">=", operand) == [0]


def test_strings_prune_by_their_prefixes() -> None:
    words = ["x" * 20 + letter for letter in "abc"]
    array = pa.array(np.repeat([*words, "apple", "zebra"], VECTOR_ROWS), pa.large_string())
    assert survivors(array, "=", "apple") == [3]
    assert survivors(array, "=", words[1]) == [0, 1, 2]
    assert survivors(array, "<", "b") == [3]
    assert survivors(array, ">", "y") == [4]
    assert survivors(array, ">=", "x" * 16) == [0, 1, 2, 4]
    assert survivors(array, "!=", "apple") == [0, 1, 2, 4]
    assert survivors(array, "!=", words[0]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        ("short", "short"),
        ("x" * 16, "x" * 16),
        ("x" * 17, "x" * 15 + "y"),
        ("naïve-and-longer-than-sixteen", "naïve-and-longf"),
        ("x" * 15 + "é", "x" * 14 + "y"),
        ("\ud7ff" * 6, "\ud7ff" * 4 + "\ue000"),
        ("\x7f" * 17, None),
        ("a" + "\x7f" * 17, "b"),
        ("\U0010ffff" * 5, None),
    ],
)
def test_upper_bounds_of_strings(value: str, bound: str | None) -> None:
    statistics = zone_map_of(pa.array([value], pa.large_string())).column_statistics("c")
    minimum, maximum = statistics.minimum.as_py(), statistics.maximum
    assert value.startswith(minimum)
    assert len(minimum.encode()) <= 16
    assert (None if maximum is None else maximum.as_py()) == bound
    if bound is not None:
        assert bound.encode() >= value.encode()


def test_strings_without_an_upper_bound_are_kept() -> None:
    array = pa.array([b"\xff" * 17] * VECTOR_ROWS + [b"a"] * VECTOR_ROWS, pa.large_binary())
    assert survivors(array, ">", b"\xff" * 30) == [0]
    assert survivors(array, "=", b"\xff" * 17) == [0]
    assert survivors(array, "=", b"b") == []


@pytest.mark.long
@settings(deadline=None, max_examples=effort(80, 3000))
@given(
    st.lists(
        st.text(max_size=12) | st.text("a\U0010ffff\ud7ff\x7f\u07ff", max_size=20), min_size=1, max_size=4
    )
)
def test_bounds_hold_for_any_text(strings: list[str]) -> None:
    array = pa.array(strings, pa.large_string())
    statistics = zone_map_of(array).column_statistics("c")
    assert statistics.minimum.as_py().encode() <= min(string.encode() for string in strings)
    if statistics.maximum is not None:
        assert statistics.maximum.as_py().encode() >= max(string.encode() for string in strings)


def test_dictionary_columns_prune_by_value() -> None:
    words = pa.array(np.repeat(["pear", "apple", "fig"], VECTOR_ROWS), pa.large_string())
    array = words.dictionary_encode()
    assert survivors(array, "=", "apple") == [1]
    assert survivors(array, ">", "apple") == [0, 2]
    entry = RangePredicate("c", "=", (array[0],))
    assert zone_map_of(array).surviving_vectors([entry]).tolist() == [0]


@pytest.mark.long
@settings(deadline=None, max_examples=effort(25, 1000))
@given(samples(types=[t for t in ALL_TYPES if not pa.types.is_dictionary(t)], most_columns=2))
def test_column_statistics(sample: Any) -> None:
    with written(sample.batches) as fragment:
        for name, array in zip(sample.whole.schema.names, sample.whole.columns, strict=True):
            found = fragment.zone_map.column_statistics(name)
            assert found.null_count == array.null_count
            kept = array.drop_null()
            if pa.types.is_floating(array.type):
                nans = pc.is_nan(kept)
                assert found.nan_count == pc.sum(nans).as_py() or not len(kept)
                kept = kept.filter(pc.invert(nans))
            if not len(kept):
                assert found.minimum is None
                assert found.maximum is None
            elif pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
                assert pc.all(pc.less_equal(found.minimum, kept)).as_py()
                assert found.maximum is None or pc.all(pc.greater_equal(found.maximum, kept)).as_py()
            else:
                assert found.minimum.equals(pc.min(kept)) or found.minimum.as_py() == 0
                assert found.maximum.equals(pc.max(kept)) or found.maximum.as_py() == 0


def test_answers_that_are_kept_are_those_of_their_predicates() -> None:
    """Of more predicates than are kept, asked in turns, and of copies that are equal."""
    found = zone_map_of(pa.array(range(20 * VECTOR_ROWS)))
    predicates = [RangePredicate("c", "<", (pa.scalar(n * VECTOR_ROWS),)) for n in range(1, 16)]
    for _ in range(2):
        for n, predicate in enumerate(predicates, 1):
            assert found.surviving_vectors([predicate]).tolist() == list(range(n))
            assert np.flatnonzero(found.certain([predicate])).tolist() == list(range(n))
            assert found.surviving_vectors([replace(predicate), predicates[0]]).tolist() == [0]


def test_who_asks_may_change_the_answer() -> None:
    found = zone_map_of(pa.array(range(3 * VECTOR_ROWS)))
    predicate = RangePredicate("c", "<", (pa.scalar(VECTOR_ROWS),))
    for ask in (found.possible, found.certain):
        ask([predicate])[:] = True
        assert ask([predicate]).tolist() == [True, False, False]


def test_lists_of_values_do_not_outlive_who_asks() -> None:
    found = zone_map_of(pa.array(range(3 * VECTOR_ROWS)))
    values = pa.array(range(100), pa.int64())
    dead = weakref.ref(values)
    assert found.surviving_vectors([RangePredicate("c", "in", (), members=values)]).tolist() == [0]
    del values
    gc.collect()
    assert dead() is None
