import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.many_files.union import UnifiedSource
from bamquery.storage.ingest.opening import open_source


@pytest.fixture
def source(table_reader):
    def make(*tables, **options):
        readers = [table_reader(f"{i}.parquet", pa.table(table)) for i, table in enumerate(tables)]
        return UnifiedSource("*.parquet", readers, **options)

    return make


def test_drifting_parts(source, rows_of):
    many = source(
        {"id": pa.array([1], pa.int32()), "airport_fee": [1.5], "ehail_fee": pa.nulls(1)},
        {"Airport_fee": [2], "id": [2**40], "cbd": ["x"]},
        {"id": pa.nulls(1)},
    )
    assert rows_of(many).to_pydict() == {
        "id": [1, 2**40, None],
        "airport_fee": [1.5, 2.0, None],
        "ehail_fee": [None, None, None],
        "cbd": [None, "x", None],
    }
    assert many.schema.types == [pa.int64(), pa.float64(), pa.int32(), pa.large_string()]
    assert many.total_rows == 3
    assert len(many.drift) == 10
    assert '1.parquet: column "airport_fee" is spelled "Airport_fee"' in many.drift


def test_projection_in_any_order_and_case(source, rows_of):
    many = source({"a": [1], "b": ["x"], "c": [2.5]}, {"b": ["y"]})
    assert rows_of(many, ["c", "b"]).to_pydict() == {"c": [2.5, None], "b": ["x", "y"]}
    assert [batch.schema.names for batch in many.batches(["B"])] == [["b"], ["b"]]
    assert sum(batch.num_rows for batch in many.batches([])) == 2
    with pytest.raises(IngestError, match='there is no column "bb"'):
        list(many.batches(["bb"]))


def test_bytes_read_follow_the_batches(source):
    many = source({"a": np.arange(5000)}, {"a": np.arange(5000)})
    seen = [many.bytes_read for _ in many.batches()]
    assert seen == sorted(seen)
    assert many.bytes_read == many.total_bytes


def test_exclude_and_columns(source, rows_of):
    table = {"a": [1], "b": ["x"], "tags": [[1]]}
    assert rows_of(source(table, exclude=["tags"])).column_names == ["a", "b"]
    assert rows_of(source(table, columns=["B", "a"])).column_names == ["b", "a"]
    assert rows_of(source(table, columns=["tags", "a"], exclude=["TAGS"]), None).column_names == ["a"]
    with pytest.raises(IngestError, match=r'0\.parquet: there is no column "tag"\. Did you mean "tags"\?'):
        source(table, exclude=["tag"])
    with pytest.raises(IngestError, match="no column is left to load"):
        source({"a": [1]}, exclude=["a"])


def test_nested_columns_are_refused_all_at_once(source):
    with pytest.raises(IngestError) as caught:
        source({"a": [1], "tags": [[1]], "point": [{"x": 1}]})
    message = str(caught.value)
    assert 'column "tags" has type list' in message
    assert 'column "point" has type struct' in message
    assert 'exclude=["tags", "point"]' in message


@pytest.mark.parametrize("names", [["fee", "Fee"], ["FEE", "x", "fee"]])
def test_names_that_differ_by_case_only(source, rows_of, names):
    table = pa.table([[i] for i in range(len(names))], names=names)
    assert source(table).schema.names == [*names[:-1], f"{names[-1]}_1"]
    assert rows_of(source(table, exclude=[names[-1]])).column_names == names[:-1]
    assert rows_of(source(table, columns=[names[-1]])).column_names == names[-1:]


def test_names_that_are_the_same(source, rows_of):
    table = pa.table([[1], [2], [3], [4]], names=["a", "a_1", "a", "b"])
    assert rows_of(source(table)).to_pydict() == {"a": [1], "a_1": [2], "a_2": [3], "b": [4]}
    assert rows_of(source(table), ["b", "a_2"]).to_pydict() == {"b": [4], "a_2": [3]}
    assert rows_of(source(table, exclude=["a_2"])).to_pydict() == {"a": [1], "a_1": [2], "b": [4]}
    assert rows_of(source(table, exclude=["a"])).to_pydict() == {"a_1": [2], "b": [4]}


def test_names_that_are_the_same_in_a_file(tmp_path, rows_of):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table([[1], [2], [3], [4]], names=["a", "a_1", "a", "b"]), path)
    assert rows_of(open_source(path)).to_pydict() == {"a": [1], "a_1": [2], "a_1_1": [3], "b": [4]}
    assert rows_of(open_source(path), ["b", "a_1_1"]).to_pydict() == {"b": [4], "a_1_1": [3]}


def test_names_that_are_missing(source):
    with pytest.raises(IngestError, match=r"0\.parquet: column 2 has no name"):
        source(pa.table([[1], [2]], names=["a", ""]))


def test_a_value_that_does_not_fit_the_union(source):
    many = source({"id": [0.5]}, {"id": [2**53, 2**53 + 1]})
    with pytest.raises(
        IngestError, match=r'1\.parquet: row 2, column "id": 9007199254740993 does not fit DOUBLE'
    ):
        list(many.batches())


def test_empty_parts_make_no_batches(source):
    many = source({"a": pa.array([], pa.int64())}, {"a": [1]}, {"a": pa.array([], pa.int8())})
    assert [batch.num_rows for batch in many.batches()] == [1]
