"""What tables hold, what other types become, and how refusals say the way out."""

import pyarrow as pa
import pytest

from bamquery.errors import StorageError
from bamquery.storage.format.storable_types import (
    is_stored_type,
    normalize_schema,
    normalize_type,
    require_stored_schema,
    settle_nulls,
    value_bits,
    value_kind,
)
from tests.unit.storage.random_columns import ALL_TYPES


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_stored_types_stay(type_: pa.DataType) -> None:
    assert is_stored_type(type_)
    if not pa.types.is_dictionary(type_):
        assert normalize_type(type_, "c") == type_


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.string(), pa.large_string()),
        (pa.string_view(), pa.large_string()),
        (pa.binary(), pa.large_binary()),
        (pa.binary_view(), pa.large_binary()),
        (pa.binary(16), pa.large_binary()),
        (pa.float16(), pa.float32()),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal64(12, 2), pa.decimal128(12, 2)),
        (pa.decimal256(38, 2), pa.decimal128(38, 2)),
        (pa.decimal128(12, -3), pa.decimal128(15, 0)),
        (pa.time32("s"), pa.time64("us")),
        (pa.time32("ms"), pa.time64("us")),
        (pa.date64(), pa.date32()),
        (pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string())),
        (pa.dictionary(pa.uint64(), pa.time32("s")), pa.dictionary(pa.int32(), pa.time64("us"))),
        (pa.run_end_encoded(pa.int32(), pa.string()), pa.large_string()),
        (pa.uuid(), pa.large_string()),
        (pa.bool8(), pa.bool_()),
        (pa.json_(), pa.large_string()),
        (pa.opaque(pa.int32(), "type", "vendor"), pa.int32()),
        (pa.dictionary(pa.int8(), pa.uuid()), pa.dictionary(pa.int32(), pa.large_string())),
        (pa.dictionary(pa.int8(), pa.null()), pa.null()),
        (pa.null(), pa.null()),
    ],
    ids=str,
)
def test_what_types_become(given: pa.DataType, stored: pa.DataType) -> None:
    assert normalize_type(given, "c") == stored


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        (pa.list_(pa.int8()), "leave the column out"),
        (pa.map_(pa.string(), pa.int8()), "leave the column out"),
        (pa.struct([("a", pa.int8())]), "select its fields"),
        (pa.duration("s"), "cast it to int64"),
        (pa.decimal256(50, 2), "cast it to decimal128"),
        (pa.decimal128(38, -1), "cast it to decimal128"),
        (pa.month_day_nano_interval(), "leave the column out"),
        (pa.dictionary(pa.int8(), pa.list_(pa.int8())), "leave the column out"),
    ],
    ids=str,
)
def test_what_cannot_be_stored(given: pa.DataType, way_out: str) -> None:
    with pytest.raises(
        StorageError, match=f'column "tags" has type .*, which tables cannot hold: .*{way_out}'
    ):
        normalize_schema(pa.schema([("x", pa.int8()), ("tags", given)]))


def test_schemas_lose_metadata_and_become_nullable() -> None:
    field = pa.field("x", pa.string(), nullable=False, metadata={"a": "b"})
    found = normalize_schema(pa.schema([field], metadata={"pandas": "{}"}))
    assert found.equals(pa.schema([("x", pa.large_string())]), check_metadata=True)


@pytest.mark.parametrize("names", [["a", "b", "a"], ["a", "b", "A"], ["Straße", "STRASSE"]])
def test_names_must_differ_in_more_than_case(names: list[str]) -> None:
    with pytest.raises(StorageError, match=r"have the same name"):
        normalize_schema(pa.schema([(name, pa.int8()) for name in names]))


def test_names_must_not_be_empty() -> None:
    with pytest.raises(StorageError, match=r"column 2 has no name"):
        normalize_schema(pa.schema([("a", pa.int8()), ("", pa.int8())]))


def test_columns_of_nulls_become_integers() -> None:
    assert settle_nulls(pa.schema([("n", pa.null()), ("s", pa.large_string())])) == pa.schema(
        [("n", pa.int32()), ("s", pa.large_string())]
    )


def test_only_stored_types_are_accepted() -> None:
    require_stored_schema(pa.schema([(str(i), t) for i, t in enumerate(ALL_TYPES)]))
    for type_, stored in ((pa.null(), "int32"), (pa.string(), "large_string")):
        with pytest.raises(StorageError, match=f'column "x" has type {type_}, stored as {stored}'):
            require_stored_schema(pa.schema([("x", type_)]))


def test_kinds_and_widths() -> None:
    kinds = {str(t): (value_kind(t), value_bits(t)) for t in ALL_TYPES[:20] if not pa.types.is_dictionary(t)}
    assert kinds["bool"] == ("bool", 1)
    assert kinds["uint16"] == ("uint16", 16)
    assert kinds["float"] == ("float32", 32)
    assert kinds["decimal128(5, 2)"] == ("int128", 128)
    assert kinds["date32[day]"] == ("int32", 32)
    assert kinds["time64[ns]"] == ("int64", 64)
    assert value_bits(pa.dictionary(pa.int16(), pa.float64())) == 16
    assert value_bits(pa.large_string()) == 64
