"""Every cast against DuckDB: special values of every type to every type, random values, random texts."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.cpu.casts.cast import CONVERSIONS, cast
from bamquery.engine.formulas.type_families import CASTS, is_castable
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Cast, ColumnRef
from tests.oracle import check, plain
from tests.selection.effort import effort
from tests.strategies import ALL_TYPES, PLAIN_TYPES, STRINGS, array, arrays, specials

VARCHAR = pa.large_string()
pytestmark = pytest.mark.long
RELAXED = settings(max_examples=effort(30, 1000), deadline=None, derandomize=True)


def comparable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether DuckDB has the cast, and has it right."""
    if source == target or not is_castable(source, target):
        return False
    if (source, target) == (pa.bool_(), pa.decimal128(1, 1)):
        return False  # it makes 0.1 of true
    if pa.types.is_timestamp(source):
        if pa.types.is_time64(target):
            return target.unit == "us" and source.tz is None
        return (source.unit, getattr(target, "unit", None)) != ("ns", "s")
    return True


def test_every_cast_of_plans_is_here_and_no_other() -> None:
    assert set(CONVERSIONS) == {(source, target) for source, targets in CASTS.items() for target in targets}


PAIRS = [(a, b) for a in PLAIN_TYPES for b in PLAIN_TYPES if comparable(a, b)]


def compare(oracle: duckdb.DuckDBPyConnection, column: pa.Array, target: pa.DataType) -> None:
    sql = f"CAST(a AS {type_name(target)})"
    tolerance = 0.0
    if pa.types.is_floating(column.type) and pa.types.is_large_string(target):
        sql = f"replace({sql}, '-nan', 'nan')"  # there is one NaN here
    if pa.types.is_floating(column.type) and target == HUGEINT:
        # The type is that of DECIMAL(38,0), too, which rounds otherwise; here it has 38 digits.
        sql = "CAST(CASE WHEN abs(a) > 1e38 THEN 'infinity' ELSE a END AS HUGEINT)"
    if pa.types.is_decimal(column.type) and pa.types.is_floating(target):
        tolerance = 1e-15 if target == pa.float64() else 1e-7  # it rounds twice where digits are many
    check(oracle, Cast(ColumnRef(0, "a", column.type), target), sql, [column], tolerance)


@pytest.mark.parametrize(
    ("source", "target"), PAIRS, ids=[f"{type_name(a)}-{type_name(b)}" for a, b in PAIRS]
)
def test_special_values(oracle: duckdb.DuckDBPyConnection, source: pa.DataType, target: pa.DataType) -> None:
    compare(oracle, array([*specials(source), None], source), target)


@RELAXED
@given(data=st.data())
def test_random_values(oracle: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    # DuckDB takes the last nanosecond of a day for the next day.
    pairs = [(a, b) for a, b in PAIRS if a not in STRINGS and (a, b) != (pa.timestamp("ns"), pa.date32())]
    source, target = data.draw(st.sampled_from(pairs))
    compare(oracle, data.draw(arrays(source)), target)


_NUMBER = r"\A\s{0,2}[+-]?[0-9_]{0,22}(\.[0-9_]{0,8})?"
NUMBERS = st.from_regex(_NUMBER + r"([eE][+-]?[0-9]{0,3})?\s?\Z").filter(str.isascii)
# In a cast to DECIMAL exponents make DuckDB count digits that are not there: 10E-1 is no DECIMAL(1,0).
WITHOUT_EXPONENT = st.from_regex(_NUMBER + r"\s?\Z").filter(str.isascii)
MOMENTS = st.from_regex(
    r"\A ?[0-9]{1,5}[-/][0-9]{1,2}[-/][0-9]{1,2}"
    r"([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{0,10})?)?)?(Z|[+-][0-9]{2})?\Z"
).filter(str.isascii)
TIMES = st.from_regex(r"\A[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]{0,10})?)?\Z").filter(str.isascii)


@RELAXED
@given(
    texts=st.lists(NUMBERS, min_size=1, max_size=8),
    target=st.sampled_from([t for t in PLAIN_TYPES if pa.types.is_integer(t) or pa.types.is_floating(t)]),
)
@example(
    texts=["0x1F", "0b11", "-0x1", "1_000", "1__0", "_1", "1_", ".", "+.5", "5.", "1e", ""], target=pa.int32()
)
@example(
    texts=["0.5", "1.5", "-0.5", "0.49999999999999999999", "15e-1", "1e-400", "1e400", "1e19"],
    target=pa.int64(),
)
@example(
    texts=["inf", "-Infinity", "NaN", "+inf", "infi", "0x1p3", "1e400", "1e-400", "1,5"], target=pa.float64()
)
@example(texts=["-1", "-0", "256", "255.4", "255.5"], target=pa.uint8())
def test_texts_of_numbers(oracle: duckdb.DuckDBPyConnection, texts: list[str], target: pa.DataType) -> None:
    if pa.types.is_unsigned_integer(target):
        texts = [text.replace("-.", "+.") for text in texts]  # DuckDB refuses -.0 there, though not -0
    compare(oracle, pa.array(texts, VARCHAR), target)


@RELAXED
@given(texts=st.lists(WITHOUT_EXPONENT, min_size=1, max_size=8), precision=st.integers(1, 38), data=st.data())
def test_texts_of_decimals(
    oracle: duckdb.DuckDBPyConnection, texts: list[str], precision: int, data: st.DataObject
) -> None:
    target = pa.decimal128(precision, data.draw(st.integers(0, precision)))
    compare(oracle, pa.array(texts, VARCHAR), target)


@RELAXED
@given(
    texts=st.lists(MOMENTS, min_size=1, max_size=8),
    target=st.sampled_from([t for t in PLAIN_TYPES if pa.types.is_temporal(t) and not pa.types.is_time64(t)]),
)
@example(
    texts=["2020-02-30", "2020-02-29", "0044-03-15 (BC)", "2020-1-2", "2020-01/02", ""], target=pa.date32()
)
@example(texts=["2020-01-02 24:00:00", "2020-01-02 23:59:60", "2020-01-02 10"], target=pa.timestamp("us"))
@example(texts=["2020-01-02 10:00:00.0005", "2020-01-02 10:00:00.9999999"], target=pa.timestamp("ms"))
@example(texts=["2020-01-02 10:00:00+02", "2020-01-02 10:00Z"], target=pa.timestamp("us", "UTC"))
@example(texts=["2020-01-02 10:00:00+02", "2020-01-02 10:00 UTC"], target=pa.timestamp("us"))
def test_texts_of_moments(oracle: duckdb.DuckDBPyConnection, texts: list[str], target: pa.DataType) -> None:
    compare(oracle, pa.array(texts, VARCHAR), target)


@RELAXED
@given(texts=st.lists(TIMES, min_size=1, max_size=8))
@example(texts=["24:00:00", "24:00:01", "25:00:00", "10", "1.5", "10:60:00", "2020-01-02 10:11:12"])
def test_texts_of_times(oracle: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
    compare(oracle, pa.array(texts, VARCHAR), pa.time64("us"))


@RELAXED
@given(texts=st.lists(st.text(st.sampled_from("trueTRUEyYnofalsFALS10 "), max_size=5), min_size=1))
def test_texts_of_truth(oracle: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
    compare(oracle, pa.array(texts, VARCHAR), pa.bool_())


@pytest.mark.parametrize("kind", PLAIN_TYPES, ids=type_name)
def test_text_brings_back_the_value(kind: pa.DataType) -> None:
    column = array([*specials(kind), None], kind)
    again = cast(cast(column, VARCHAR, try_=False), kind, try_=False)
    assert [str(value) for value in plain(again)] == [
        str(value).replace("-nan", "nan") for value in plain(column)
    ]


def test_a_try_cast_is_null_where_a_cast_fails() -> None:
    column = pa.array(["1", "x", None, "300"], VARCHAR)
    assert cast(column, pa.int8(), try_=True).to_pylist() == [1, None, None, None]
    with pytest.raises(ExecutionError, match=r"'x' \(VARCHAR\) cannot be cast to TINYINT"):
        cast(column, pa.int8(), try_=False)


def test_a_failing_cast_names_value_and_types() -> None:
    with pytest.raises(ExecutionError, match=r"300 \(INTEGER\) cannot be cast to TINYINT"):
        cast(pa.array([1, None, 300], pa.int32()), pa.int8(), try_=False)
    with pytest.raises(ExecutionError, match=r"1234\.5 \(DECIMAL\(5,1\)\) cannot be cast to DECIMAL\(4,1\)"):
        cast(pa.array([Decimal("1234.5")], pa.decimal128(5, 1)), pa.decimal128(4, 1), try_=False)


def test_nanosecond_timestamps_become_seconds_and_times() -> None:
    column = array([1_500_000_000, -1_500_000_000, 499_999_999, None], pa.timestamp("ns"))
    assert plain(cast(column, pa.timestamp("s"), try_=False)) == [2, -2, 0, None]
    day = 86_400 * 10**9
    assert plain(cast(column, pa.time64("ns"), try_=False)) == [
        1_500_000_000,
        day - 1_500_000_000,
        499_999_999,
        None,
    ]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("s")], ids=type_name)
def test_texts_of_far_dates(oracle: duckdb.DuckDBPyConnection, kind: pa.DataType) -> None:
    """Before the first year and after the 9999th, where Arrow writes them otherwise."""
    per_day = {"DATE": 1, "TIMESTAMP": 86_400 * 10**6, "TIMESTAMP_S": 86_400}[type_name(kind)]
    days = [-719_163, -719_162, -800_000, 2_932_896, 2_932_897, 50_000_000]
    compare(oracle, array([None, *(day * per_day + per_day // 3 for day in days)], kind), VARCHAR)


@pytest.mark.parametrize("target", [pa.int64(), VARCHAR, pa.dictionary(pa.int8(), VARCHAR)], ids=str)
def test_dictionaries_convert_by_value(target: pa.DataType) -> None:
    column = pa.DictionaryArray.from_arrays(
        pa.array([0, None, 2, 0], pa.int8()), pa.array(["1", "unused, and no number", None], VARCHAR)
    )
    expected = [1, None, None, 1] if target == pa.int64() else ["1", None, None, "1"]
    converted = cast(column, target, try_=False)
    assert converted.type == target
    assert plain(converted) == expected


def test_a_dictionary_too_small_for_its_values_is_an_error() -> None:
    column = pa.array([str(n) for n in range(200)], VARCHAR)
    with pytest.raises(ExecutionError, match="200 distinct values"):
        cast(column, pa.dictionary(pa.int8(), VARCHAR), try_=False)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_slices_and_nothing_convert_like_wholes(kind: pa.DataType) -> None:
    column = array([*specials(kind), None, *specials(kind)], kind)
    text = plain(cast(column, VARCHAR, try_=False))
    assert plain(cast(column[3:9], VARCHAR, try_=False)) == text[3:9]
    assert plain(cast(column[:0], VARCHAR, try_=False)) == []
