import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.errors import IngestError
from bamquery.storage.format.storable_types import is_stored_type
from bamquery.storage.ingest.arrow.convert import convert_array
from bamquery.storage.ingest.many_files.unified_schema import ReaderSchema, unify, union_types
from bamquery.text.identifiers import fold_case

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
DICTIONARY = pa.dictionary(pa.int32(), pa.large_string())
TYPES = [
    pa.null(),
    pa.bool_(),
    *INTEGERS,
    pa.float32(),
    pa.float64(),
    pa.decimal128(5, 2),
    pa.decimal128(38, 10),
    pa.date32(),
    pa.time64("us"),
    pa.time64("ns"),
    pa.timestamp("s"),
    pa.timestamp("us"),
    pa.timestamp("ns"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ms", "America/New_York"),
    pa.large_string(),
    pa.large_binary(),
    DICTIONARY,
]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([], pa.null()),
        ([pa.null(), pa.int8()], pa.int8()),
        ([pa.int32(), pa.int64()], pa.int64()),
        ([pa.uint8(), pa.int8()], pa.int16()),
        ([pa.uint8(), pa.int64()], pa.int64()),
        ([pa.uint16(), pa.uint32()], pa.uint32()),
        ([pa.uint32(), pa.int32()], pa.int64()),
        ([pa.uint64(), pa.int8()], pa.decimal128(20, 0)),
        ([pa.int64(), pa.float64()], pa.float64()),
        ([pa.int8(), pa.float32()], pa.float64()),
        ([pa.float32(), pa.float64()], pa.float64()),
        ([pa.decimal128(5, 2), pa.int16()], pa.decimal128(7, 2)),
        ([pa.decimal128(5, 2), pa.decimal128(10, 4)], pa.decimal128(10, 4)),
        ([pa.decimal128(38, 0), pa.decimal128(5, 4)], pa.decimal128(38, 4)),
        ([pa.decimal128(5, 2), pa.float32()], pa.float64()),
        ([pa.timestamp("s"), pa.timestamp("us")], pa.timestamp("us")),
        ([pa.date32(), pa.timestamp("ms")], pa.timestamp("ms")),
        ([pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC")], pa.timestamp("ns", "UTC")),
        ([pa.timestamp("s", "Asia/Tokyo"), pa.timestamp("s", "Europe/Rome")], pa.timestamp("s", "UTC")),
        ([pa.time64("us"), pa.time64("ns")], pa.time64("ns")),
        ([DICTIONARY, pa.large_string()], pa.large_string()),
        ([DICTIONARY, pa.null()], DICTIONARY),
        ([pa.dictionary(pa.int32(), pa.int64()), pa.int32()], pa.int64()),
    ],
)
def test_union(types, expected):
    assert union_types(types) == expected


@pytest.mark.parametrize(
    "types",
    [
        [pa.int64(), pa.large_string()],
        [pa.bool_(), pa.int8()],
        [pa.large_string(), pa.large_binary()],
        [pa.timestamp("s"), pa.timestamp("s", "UTC")],
        [pa.date32(), pa.timestamp("s", "UTC")],
        [pa.date32(), pa.int32()],
        [pa.time64("us"), pa.timestamp("us")],
        [DICTIONARY, pa.int64()],
    ],
)
def test_impossible_union(types):
    assert union_types(types) is None


@given(st.lists(st.sampled_from(TYPES), max_size=5))
def test_union_depends_on_the_set_of_types_only(types):
    union = union_types(types)
    assert all(union_types(order) == union for order in itertools.permutations(types))
    assert union_types(types + types) == union
    assert union is None or pa.types.is_null(union) or is_stored_type(union)


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=5))
def test_types_that_fit_pairwise_fit_together(types):
    if all(union_types(pair) is not None for pair in itertools.combinations(types, 2)):
        assert union_types(types) is not None


VALUES = {
    "integers": st.integers(-(2**53), 2**53),
    "small": st.integers(0, 127),
    "halves": st.integers(-(2**20), 2**20).map(lambda n: n / 2),
}


@given(st.data())
def test_values_survive(data):
    """Whatever numeric types two parts have, each value is equal to itself in the union."""
    kinds = [pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.int64(), pa.float32(), pa.float64()]
    types = data.draw(st.lists(st.sampled_from([*kinds, pa.decimal128(12, 1)]), min_size=2, max_size=3))
    union = union_types(types)
    for type_ in types:
        values = "halves" if pa.types.is_floating(type_) or pa.types.is_decimal(type_) else "small"
        if type_ == pa.int64():
            values = "integers"
        given_values = data.draw(st.lists(st.none() | VALUES[values], max_size=20))
        if pa.types.is_decimal(type_):
            array = pa.array(given_values, pa.float64()).cast(type_)
        else:
            array = pa.array(given_values, type_)
        converted = convert_array(array, union)
        assert converted.type == union
        assert [None if v is None else float(v) for v in converted.to_pylist()] == [
            None if v is None else float(v) for v in array.to_pylist()
        ]


COLUMNS = st.lists(
    st.tuples(st.sampled_from(["fee", "Fee", "FEE", "tip", "Tip", "zone"]), st.sampled_from(TYPES)),
    unique_by=lambda column: fold_case(column[0]),
    max_size=3,
)


@given(st.lists(COLUMNS, min_size=1, max_size=4), st.randoms())
def test_unify_is_commutative_but_for_order_and_spelling(columns, random):
    readers = [ReaderSchema(f"part {i}", pa.schema(fields)) for i, fields in enumerate(columns)]
    shuffled = random.sample(readers, len(readers))

    def outcome(readers):
        try:
            return {fold_case(field.name): field.type for field in unify(readers).schema}
        except IngestError:
            return None

    assert outcome(readers) == outcome(shuffled)


def readers(*schemas):
    return [ReaderSchema(f"{i}.parquet", pa.schema(schema)) for i, schema in enumerate(schemas)]


def test_first_spelling_and_order_win_and_drift_is_told():
    unified = unify(
        readers(
            {"id": pa.int32(), "airport_fee": pa.float64()},
            {"Airport_fee": pa.int64(), "id": pa.int64(), "cbd": pa.null()},
        )
    )
    assert unified.schema == pa.schema({"id": pa.int64(), "airport_fee": pa.float64(), "cbd": pa.int32()})
    assert unified.mapping == ((0, 1, None), (1, 0, 2))
    assert unified.drift == (
        '0.parquet: column "id" is INTEGER, read as BIGINT',
        '1.parquet: column "airport_fee" is spelled "Airport_fee"',
        '1.parquet: column "airport_fee" is BIGINT, read as DOUBLE',
        '1.parquet: column "cbd" is without values, read as INTEGER',
        '0.parquet: column "cbd" is missing, read as null',
    )


def test_one_part_does_not_drift():
    assert unify(readers({"a": pa.null()})).drift == ()


def test_impossible_union_names_column_and_both_files():
    with pytest.raises(IngestError) as caught:
        unify(readers({"a": pa.int8()}, {"a": pa.null()}, {"A": pa.float64()}, {"a": pa.large_string()}))
    message = str(caught.value)
    assert 'column "a" is TINYINT in 0.parquet but VARCHAR in 3.parquet' in message
    assert 'exclude=["a"]' in message


def test_all_impossible_unions_are_told_at_once():
    with pytest.raises(IngestError, match=r'"a" is .*; column "c" is .*exclude=\["a", "c"\]'):
        unify(
            readers(
                {"a": pa.int8(), "b": pa.int8(), "c": pa.bool_()},
                {"a": pa.large_string(), "b": pa.int16(), "c": pa.int8()},
            )
        )


def text(name, type_):
    return ReaderSchema(name, pa.schema({"a": type_}), is_text=True)


@pytest.mark.parametrize(
    ("parts_", "expected"),
    [
        ([text("a.csv", pa.int64()), text("b.csv", pa.date32())], pa.large_string()),
        ([text("a.csv", pa.int64()), text("b.csv", pa.float64())], pa.float64()),
        ([text("a.csv", pa.null())], pa.large_string()),
        ([text("a.csv", pa.null()), *readers({"a": pa.null()})], pa.int32()),
        ([text("a.csv", pa.int64()), *readers({"a": pa.large_string()})], pa.large_string()),
        ([text("a.csv", pa.int64()), *readers({"a": DICTIONARY})], pa.large_string()),
        ([text("a.csv", pa.int64()), *readers({"a": pa.int8()})], pa.int64()),
    ],
)
def test_text_can_be_had_as_strings(parts_, expected):
    assert unify(parts_).schema.field("a").type == expected
    assert unify(parts_[::-1]).schema.field("a").type == expected


def test_text_that_is_no_number_does_not_fit_numbers():
    with pytest.raises(IngestError, match=r'"a" is BIGINT in 0\.parquet but VARCHAR in a\.csv'):
        unify([text("a.csv", pa.large_string()), *readers({"a": pa.int64()})])


def test_types_of_one_name_are_told_apart():
    unified = unify(readers({"a": pa.timestamp("us", "UTC")}, {"a": pa.timestamp("us", "Asia/Tokyo")}))
    assert unified.drift == (
        '1.parquet: column "a" is timestamp[us, tz=Asia/Tokyo], read as timestamp[us, tz=UTC]',
    )
