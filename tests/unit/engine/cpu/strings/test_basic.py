"""Functions of strings against DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.engine.cpu.device import CpuDevice
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, ColumnRef, Literal
from tests.oracle import check, evaluate
from tests.strategies import array, arrays, specials

VARCHAR = pa.large_string()
TEXT = ColumnRef(0, "a", VARCHAR)
TEXTS = array([*specials(VARCHAR), "hello", "Straße", "ǆungla", "\u3000wide\u00a0", "a\\%b", None], VARCHAR)
RELAXED = settings(max_examples=60, deadline=None, derandomize=True)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(value: object, kind: pa.DataType = VARCHAR) -> Literal:
    return Literal(pa.scalar(value, kind))


@pytest.mark.parametrize("function", ["lower", "upper", "length", "trim"])
def test_of_one_string(oracle: duckdb.DuckDBPyConnection, function: str) -> None:
    kind = pa.int64() if function == "length" else VARCHAR
    check(oracle, Call(function, (TEXT,), kind), f"{function}(a)", [TEXTS])


@RELAXED
@given(texts=arrays(VARCHAR), function=st.sampled_from(["length", "trim"]))
def test_of_random_strings(oracle: duckdb.DuckDBPyConnection, texts: pa.Array, function: str) -> None:
    kind = pa.int64() if function == "length" else VARCHAR
    check(oracle, Call(function, (TEXT,), kind), f"{function}(a)", [texts])


def test_concat(oracle: duckdb.DuckDBPyConnection) -> None:
    other = array([*specials(VARCHAR)[::-1], None, "x", None, "y", "z", "w"], VARCHAR)
    check(oracle, Call("concat", (TEXT, ColumnRef(1, "b", VARCHAR)), VARCHAR), "a || b", [TEXTS, other])
    check(oracle, Call("concat", (literal("<"), TEXT), VARCHAR), "'<' || a", [TEXTS])
    check(oracle, Call("concat", (TEXT, literal(None)), VARCHAR), "a || NULL::VARCHAR", [TEXTS])


PATTERNS = [
    "",
    "%",
    "_",
    "a%",
    "%b",
    "%a%",
    "a_b",
    "a%b",
    "a\\%b",
    "a\\b",
    "A%",
    "ß",
    "é_",
    "__a",
    "%%",
    "x",
    "İ",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("function", ["like", "ilike"])
def test_like(oracle: duckdb.DuckDBPyConnection, function: str, pattern: str) -> None:
    call = Call(function, (TEXT, literal(pattern)), pa.bool_())
    check(oracle, call, f"a {function} {quoted(pattern)}", [TEXTS])


@RELAXED
@given(
    texts=st.lists(st.text("aAb%_\\\n.*é", max_size=6), min_size=1, max_size=6),
    pattern=st.text("aAb%_\\\n.*é", max_size=6),
    function=st.sampled_from(["like", "ilike"]),
)
def test_random_patterns(
    oracle: duckdb.DuckDBPyConnection, texts: list[str], pattern: str, function: str
) -> None:
    call = Call(function, (TEXT, literal(pattern)), pa.bool_())
    check(oracle, call, f"a {function} {quoted(pattern)}", [pa.array(texts, VARCHAR)])


@pytest.mark.parametrize("part", ["", "a", "ab", "👍", "%", "A"])
@pytest.mark.parametrize("function", ["starts_with", "contains"])
def test_parts(oracle: duckdb.DuckDBPyConnection, function: str, part: str) -> None:
    call = Call(function, (TEXT, literal(part)), pa.bool_())
    check(oracle, call, f"{function}(a, {quoted(part)})", [TEXTS])


@pytest.mark.parametrize("function", ["like", "ilike", "starts_with", "contains"])
def test_a_null_pattern_gives_null(function: str) -> None:
    batch = pa.record_batch([TEXTS], ["a"])
    assert evaluate(Call(function, (TEXT, literal(None)), pa.bool_()), batch) == [None] * len(TEXTS)


def test_a_pattern_beyond_all_measure_is_an_error() -> None:
    call = Call("like", (TEXT, literal("_x%" * 1_000_000)), pa.bool_())
    with pytest.raises(ExecutionError, match="like: "):
        CpuDevice().evaluate([call], pa.record_batch([TEXTS], ["a"]))


PLACES = [0, 1, 2, 3, 5, 6, 9, -1, -2, -5, -6, -9, 2**31 - 1, -(2**31) + 1]


@pytest.mark.parametrize("length", [None, *PLACES])
@pytest.mark.parametrize("start", PLACES)
def test_substring(oracle: duckdb.DuckDBPyConnection, start: int, length: int | None) -> None:
    call = Call("substring", (TEXT, literal(start, pa.int64()), literal(length, pa.int64())), VARCHAR)
    sql = f"substring(a, {start})" if length is None else f"substring(a, {start}, {length})"
    check(oracle, call, sql, [TEXTS])


def test_functions_of_dictionaries_look_at_each_value_once() -> None:
    values = pa.array(["b", "a", None, "never used"], VARCHAR)
    column = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 2], pa.int8()), values)
    batch = pa.record_batch([column], ["a"])
    reference = ColumnRef(0, "a", column.type)
    assert evaluate(Call("upper", (reference,), VARCHAR), batch) == ["A", None, "B", None]
    assert evaluate(Call("concat", (reference, reference), VARCHAR), batch) == ["aa", None, "bb", None]


PARTS = st.lists(st.sampled_from(["%", "a", "b", "é", "ab", "_"]), min_size=1, max_size=7).map("".join)


@RELAXED
@given(
    texts=st.lists(st.none() | st.text("abé%", max_size=12), min_size=1, max_size=40),
    pattern=PARTS,
    skip=st.integers(0, 9),
)
def test_like_of_parts(
    oracle: duckdb.DuckDBPyConnection, texts: list[str | None], pattern: str, skip: int
) -> None:
    """Of slices, too, whose bitmaps and offsets begin elsewhere."""
    column = array(texts, VARCHAR).slice(min(skip, len(texts) - 1))
    like = Call("like", (TEXT, literal(pattern)), pa.bool_())
    check(oracle, like, f"a LIKE {quoted(pattern)}", [column])


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 31, 33, 64, 65])
def test_like_finds_parts_at_every_place(size: int) -> None:
    part = "x" + "y" * (size - 2) + "z" if size > 1 else "x"
    texts = ["-" * before + part + "-" * behind for before in range(40) for behind in (0, 1, 40)]
    broken = [text.replace(part, part[:-1] + "?") for text in texts]
    # What ends in the next string is in neither.
    torn = [piece for before in range(20) for piece in ("-" * before + part[:1], part[1:] or "-")]
    column = pa.array([*texts, *broken, *(torn if size > 1 else [])], VARCHAR)
    frame = CpuDevice().from_arrow(pa.record_batch([column], ["a"]))
    rest = [text.partition(part)[1:] for text in column.to_pylist()]
    for pattern, more in ((f"%{part}%", ""), (f"%{part}%-%", "-")):
        like = Call("like", (TEXT, literal(pattern)), pa.bool_())
        found = CpuDevice().evaluate([like], frame).column(0).to_pylist()
        expected = [bool(held) and more in behind for held, behind in rest]
        assert found == expected
