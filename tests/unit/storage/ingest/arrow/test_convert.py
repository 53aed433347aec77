import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.arrow.convert import convert_array, convert_batch, convert_chunk
from bamquery.storage.ingest.sources.source import Chunk

DAY = 86_400_000


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (pa.array([1, None], pa.int8()), pa.int64(), [1, None]),
        (pa.array([2**53, -(2**53)]), pa.float64(), [2.0**53, -(2.0**53)]),
        (pa.array([np.float16(1.5), None], pa.float16()), pa.float32(), [1.5, None]),
        (pa.array([0.5, float("inf")]), pa.float32(), [0.5, float("inf")]),
        (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
        (pa.array([Decimal("0.10"), None]), pa.float64(), [0.1, None]),
        (pa.array(["a", None]), pa.large_string(), ["a", None]),
        (pa.array(["a" * 20], pa.string_view()), pa.large_string(), ["a" * 20]),
        (pa.array([b"ab"], pa.binary(2)), pa.large_binary(), [b"ab"]),
        (pa.array(["a", None]).dictionary_encode(), pa.large_string(), ["a", None]),
        (pc.run_end_encode(pa.array([1, 1, 2])), pa.int64(), [1, 1, 2]),
        (pa.array([5], pa.time32("s")), pa.time64("us"), [datetime.time(0, 0, 5)]),
        (pa.array([3 * DAY], pa.date64()), pa.date32(), [datetime.date(1970, 1, 4)]),
        (pa.array([1], pa.date32()), pa.timestamp("us"), [datetime.datetime(1970, 1, 2)]),
        (pa.nulls(2), pa.dictionary(pa.int32(), pa.large_string()), [None, None]),
        (pa.array([], pa.null()), pa.int32(), []),
    ],
)
def test_values_stay_equal(array, type_, expected):
    converted = convert_array(array, type_)
    assert converted.type == type_
    assert converted.to_pylist() == expected


def test_nan_goes_to_a_narrower_float():
    assert str(convert_array(pa.array([float("nan"), 1.0]), pa.float32())[0]) == "nan"


DICTIONARY = pa.dictionary(pa.int32(), pa.large_string())


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_indexes_of_null_become_null(type_):
    indexes = pa.array([0, 1, None, 2, 3], pa.int32())
    array = pa.DictionaryArray.from_arrays(indexes, pa.array(["x", None, "y", None], type_))
    for piece in (array, array.slice(1)):
        converted = convert_array(piece, DICTIONARY)
        assert converted.type == DICTIONARY
        assert converted.dictionary.to_pylist() == ["x", "y"]
        assert converted.indices.to_pylist() == [0, None, None, 1, None][len(array) - len(piece) :]


def test_dictionaries_without_null_stay_as_they_are():
    array = pa.array(["a", None, "a"], pa.large_string()).dictionary_encode()
    assert convert_array(array, DICTIONARY) is array


def test_dictionaries_of_extensions_and_of_dictionaries():
    keys = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))
    nested = pa.DictionaryArray.from_arrays([0, 0], pa.array(["q"]))
    for values, text in ((keys, "00000000-0000-0000-0000-000000000000"), (nested, "q")):
        array = pa.DictionaryArray.from_arrays([0, None], values)
        assert convert_array(array, DICTIONARY).to_pylist() == [text, None]
        assert convert_array(array, pa.large_string()).to_pylist() == [text, None]


@pytest.mark.parametrize(
    ("array", "type_"),
    [
        (pa.array([2**53 + 1]), pa.float64()),
        (pa.array([-(2**53) - 1]), pa.float64()),
        (pa.array([2**63], pa.uint64()), pa.float64()),
        (pa.array([2**31]), pa.int32()),
        (pa.array([-1]), pa.uint8()),
        (pa.array([0.5]), pa.int64()),
        (pa.array([float("nan")]), pa.int64()),
        (pa.array([0.1]), pa.float32()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([Decimal("0.12345678901234567890")]), pa.float64()),
        (pa.array([Decimal("123.45")]), pa.decimal128(4, 2)),
        (pa.array([10**17], pa.timestamp("us")), pa.timestamp("ns")),
        (pa.array([datetime.date(9999, 1, 1)]), pa.timestamp("ns")),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array(["x"]), pa.int64()),
    ],
)
def test_a_value_that_would_change_is_refused(array, type_):
    with pytest.raises((pa.ArrowException, ValueError)):
        convert_array(array, type_)


def test_misfit_names_file_place_row_and_column(table_reader, tmp_path):
    reader = table_reader("trips.parquet", pa.table({"a": [1]}), path=tmp_path / "trips.parquet")
    values = list(range(5000))
    values[4321] = 2**53 + 1
    chunk = Chunk(pa.record_batch({"id": values}), "row group 7", 100_001, 0)
    with pytest.raises(IngestError) as caught:
        convert_chunk(chunk, [0], pa.schema({"id": pa.float64()}), reader)
    assert str(caught.value).startswith(
        f'{reader.path}: row 104322 of row group 7, column "id": 9007199254740993 does not fit DOUBLE'
    )
    assert caught.value.path == tmp_path / "trips.parquet"


def test_strings_that_are_not_utf8_are_refused(table_reader):
    broken = pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0])), pa.py_buffer(b"a\xff")],
    )
    chunk = Chunk(pa.record_batch({"flag": broken}), "row group 0", 1, 0)
    with pytest.raises(IngestError, match='x: row 2 of row group 0, column "flag": the value does not fit'):
        convert_chunk(chunk, [0], pa.schema({"flag": pa.large_string()}), table_reader("x", pa.table({})))


def test_missing_columns_are_null_and_no_columns_keep_the_rows(table_reader):
    reader = table_reader("x", pa.table({}))
    chunk = Chunk(pa.record_batch({"a": [1, 2]}), "", 1, 0)
    wide = convert_chunk(chunk, [None, 0], pa.schema({"b": pa.large_string(), "a": pa.int64()}), reader)
    assert wide.to_pydict() == {"b": [None, None], "a": [1, 2]}
    assert convert_chunk(chunk, [], pa.schema([]), reader).num_rows == 2


def test_a_batch_that_fits_is_not_copied():
    batch = pa.record_batch({"a": [1, 2]})
    assert convert_batch(batch, [0], batch.schema, "x", 1) is batch
    with pytest.raises(IngestError, match='x: row 12, column "a": 300 does not fit TINYINT'):
        convert_batch(pa.record_batch({"a": [1, 300]}), [0], pa.schema({"a": pa.int8()}), "x", 11)
