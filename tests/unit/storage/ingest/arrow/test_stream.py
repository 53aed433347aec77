import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from bamquery.errors import IngestError, SqlError
from bamquery.storage.ingest.arrow.stream import StreamReader
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.ingest.sources.source import BATCH_ROWS

ROWS = {"id": [1, 2, None], "name": ["a", None, "c"]}
SCHEMA = pa.schema({"id": pa.int64(), "name": pa.large_string()})


class Capsule:
    """Anything that speaks the PyCapsule interface."""

    def __init__(self, table):
        self.table = table
        self.asked = 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.asked += 1
        return self.table.__arrow_c_stream__(requested_schema)


class ArrayCapsule:
    def __arrow_c_array__(self, requested_schema=None):
        return pa.record_batch(ROWS).__arrow_c_array__(requested_schema)


OBJECTS = {
    "pyarrow.Table": lambda folder: pa.table(ROWS),
    "pyarrow.Table of one batch": lambda folder: pa.record_batch(ROWS),
    "pyarrow.RecordBatchReader": lambda folder: pa.table(ROWS).to_reader(),
    "pyarrow.Dataset": lambda folder: (
        pq.write_table(pa.table(ROWS), folder / "x.parquet") or ds.dataset(folder / "x.parquet")
    ),
    "polars.DataFrame": lambda folder: pl.DataFrame(ROWS),
    "polars.LazyFrame": lambda folder: pl.LazyFrame(ROWS).filter(pl.lit(value=True)),
    "Capsule": lambda folder: Capsule(pa.table(ROWS)),
    "ArrayCapsule": lambda folder: ArrayCapsule(),
    "pandas.DataFrame": lambda folder: pd.DataFrame(
        {"id": pd.array([1, 2, None], "Int64"), "name": ["a", None, "c"]}, index=[7, 8, 9]
    ),
}
ONCE = {"pyarrow.RecordBatchReader", "Capsule"}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects(kind, tmp_path, rows_of):
    source = open_source(OBJECTS[kind](tmp_path))
    assert source.name.split(".")[-1] == kind.split(" of ")[0].split(".")[-1]
    assert source.schema == SCHEMA
    assert rows_of(source).to_pydict() == ROWS
    if kind in ONCE:
        with pytest.raises(IngestError, match="can be read only once"):
            list(source.batches())
    else:
        assert rows_of(source, ["name"]).to_pydict() == {"name": ROWS["name"]}
        assert sum(batch.num_rows for batch in source.batches([])) == 3


@pytest.mark.parametrize("kind", OBJECTS)
def test_columns_and_exclude(kind, tmp_path, rows_of):
    source = open_source(OBJECTS[kind](tmp_path), exclude=["ID"])
    assert rows_of(source).to_pydict() == {"name": ROWS["name"]}


def test_pandas_and_polars_need_not_be_installed():
    code = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "polars"):
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
import pyarrow as pa
from bamquery.storage.ingest.opening import open_source
table = pa.table({"a": [1]})
assert sum(batch.num_rows for batch in open_source(table).batches()) == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_capsule_is_asked_once(rows_of):
    capsule = Capsule(pa.table(ROWS))
    rows_of(open_source(capsule))
    assert capsule.asked == 1


def test_large_chunks_come_in_batches(rows_of):
    rows = 2 * BATCH_ROWS + 5
    for frame in (
        pa.table({"a": np.arange(rows)}),
        pl.DataFrame({"a": np.arange(rows)}),
        pd.DataFrame({"a": np.arange(rows)}),
    ):
        source = open_source(frame)
        assert source.total_rows == rows
        assert rows_of(source).column("a").to_pylist() == list(range(rows))
    assert rows_of(open_source(pa.table({"a": np.arange(rows)}).to_reader())).num_rows == rows


def test_pandas_kinds_of_columns(rows_of):
    frame = pd.DataFrame(
        {
            "float": [1.5, np.nan],
            "when": pd.to_datetime(["2024-01-01", None]),
            "code": pd.Categorical(["x", "y"]),
            0: [True, False],
        }
    ).set_index("float", drop=False)
    table = rows_of(open_source(frame))
    assert table.column_names == ["float", "when", "code", "0"]
    assert table.column("float").to_pylist() == [1.5, None]
    assert table.column("code").to_pylist() == ["x", "y"]
    assert pa.types.is_dictionary(table.schema.field("code").type)
    assert pa.types.is_timestamp(table.schema.field("when").type)


def test_pandas_columns_of_mixed_values_are_named():
    with pytest.raises(IngestError, match=r'pandas\.DataFrame: column "odd" has values of several types'):
        open_source(pd.DataFrame({"odd": [1, "x", 2.5]}, dtype=object))


def test_polars_types(rows_of):
    frame = pl.DataFrame(
        {
            "category": pl.Series(["a", "b", "a"], dtype=pl.Categorical),
            "text": ["x" * 30, None, ""],
            "time": [None, None, None],
            "wide": pl.Series([1, 2, 3], dtype=pl.UInt64),
        }
    )
    table = rows_of(open_source(frame))
    assert table.column("category").to_pylist() == ["a", "b", "a"]
    assert table.schema.field("category").type == pa.dictionary(pa.int32(), pa.large_string())
    assert table.schema.field("time").type == pa.int32()
    assert table.column("text").to_pylist() == ["x" * 30, None, ""]


def test_an_old_polars_without_batches(monkeypatch):
    monkeypatch.delattr(pl.LazyFrame, "collect_batches")
    with pytest.raises(IngestError, match=r"use \.collect\(\)"):
        open_source(pl.LazyFrame(ROWS))


def test_a_lazy_frame_that_fails():
    frame = pl.LazyFrame({"a": ["x"]}).select(pl.col("a").cast(pl.Int64, strict=True))
    with pytest.raises(IngestError, match=r"polars\.LazyFrame: failed after 0 rows"):
        list(open_source(frame).batches())


def test_errors_of_a_stream_say_how_far_it_came():
    def batches():
        yield pa.record_batch({"a": [1, 2]})
        raise RuntimeError("the cable broke")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(
        IngestError, match=r"pyarrow\.RecordBatchReader: failed after 2 rows: the cable broke"
    ):
        list(open_source(reader).batches())


def test_our_own_errors_pass():
    def start(names):
        raise SqlError("no")
        yield

    with pytest.raises(SqlError):
        list(StreamReader("x", SCHEMA, start).read([0], [pa.int64()]))


def test_only_one_of_two_threads_gets_a_stream():
    source = open_source(pa.table({"a": np.arange(1000)}).to_reader(max_chunksize=10))
    results = []

    def read():
        try:
            results.append(sum(batch.num_rows for batch in source.batches()))
        except IngestError:
            results.append("refused")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results, key=str) == [1000, "refused", "refused", "refused"]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (pd.Series([1]), r"pandas\.Series: is a column, not a table: use \.to_frame\(\)"),
        (pl.Series([1]), r"polars\.Series: is a column"),
        (pa.chunked_array([[1]]), r"pyarrow\.ChunkedArray: .*non-struct"),
        (42, "cannot load int: give a path"),
        ({"a": [1]}, "cannot load dict: give a path"),
        ([pa.table(ROWS)], "cannot load list"),
        (pa.table({"a": [[1]]}), r'pyarrow\.Table: column "a" has type list<'),
    ],
)
def test_what_cannot_be_loaded(what, message):
    with pytest.raises(IngestError, match=message):
        open_source(what)


@pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame])
def test_python_objects_of_polars_are_refused(make, rows_of):
    frame = make({"a": pl.Series([object()], dtype=pl.Object), "b": [1]})
    with pytest.raises(IngestError, match='column "a" holds Python objects'):
        open_source(frame)
    assert rows_of(open_source(frame, exclude=["a"])).to_pydict() == {"b": [1]}


def test_sparse_columns_of_pandas(rows_of):
    text = pd.array(["x", "y"], dtype=pd.SparseDtype(object))
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0, 1]), "b": text, "c": [1.5, 2.5]})
    assert rows_of(open_source(frame)).to_pydict() == {"a": [0, 1], "b": ["x", "y"], "c": [1.5, 2.5]}


def test_periods_of_pandas_are_refused():
    frame = pd.DataFrame({"a": pd.period_range("2024", periods=2, freq="M")})
    with pytest.raises(IngestError, match=r'column "a" has periods of pandas.*to_timestamp'):
        open_source(frame)


@pytest.mark.parametrize("kind", ["Table", "reader", "pandas"])
def test_columns_of_one_name(kind, rows_of):
    table = pa.Table.from_arrays([[1], [2], [3]], names=["a", "A", "a"])
    what = {"Table": table, "reader": table.to_reader()}.get(kind)
    source = open_source(table.to_pandas() if what is None else what)
    assert rows_of(source, ["a_2", "a"]).to_pydict() == {"a_2": [3], "a": [1]}
    assert source.schema.names == ["a", "A_1", "a_2"]


def test_a_dataset_reads_by_names():
    table = pa.Table.from_arrays([[1], [2]], names=["a", "a"])
    with pytest.raises(IngestError, match='several columns are called "a"'):
        open_source(ds.dataset(table))
