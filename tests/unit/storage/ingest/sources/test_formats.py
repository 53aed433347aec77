import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.sources.formats import (
    check_compression,
    check_format,
    compression_of,
    detect_format,
)


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("a.parquet", "parquet"),
        ("a.PQ", "parquet"),
        ("a.csv", "csv"),
        ("a.b.csv.gz", "csv"),
        ("a.tsv", "tsv"),
        ("a.tsv.gz", "tsv"),
        ("a.csv.zst", "csv"),
        ("a.TSV.zst", "tsv"),
        ("a.json.zst", "json"),
        ("a.ndjson.zst", "json"),
        ("a.jsonl.zst", "json"),
        ("a.arrow", "arrow"),
        ("a.feather", "arrow"),
        ("a.ipc", "arrow"),
        ("a.json", "json"),
        ("a.NDJSON", "json"),
        ("a.jsonl.gz", "json"),
    ],
)
def test_by_name(tmp_path, name, format_):
    assert detect_format(tmp_path / name) == format_


def test_by_first_bytes(tmp_path):
    table = pa.table({"a": [1]})
    pq.write_table(table, tmp_path / "one")
    with pa.ipc.new_file(tmp_path / "two", table.schema) as writer:
        writer.write(table)
    with pa.ipc.new_stream(tmp_path / "three.dat", table.schema) as writer:
        writer.write(table)
    assert detect_format(tmp_path / "one") == "parquet"
    assert detect_format(tmp_path / "two") == "arrow"
    assert detect_format(tmp_path / "three.dat") == "arrow"


def test_unknown(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(
        IngestError, match=r"a\.txt: neither its name nor its first bytes.*\.parquet.*format="
    ):
        detect_format(tmp_path / "a.txt")
    (tmp_path / "b").write_bytes(b"")
    with pytest.raises(IngestError, match="is an empty file"):
        detect_format(tmp_path / "b")
    with pytest.raises(IngestError, match="cannot be read: No such file"):
        detect_format(tmp_path / "c")


def test_compression_by_first_bytes():
    assert compression_of(gzip.compress(b"a")) == "gzip"
    assert compression_of(pa.Codec("zstd").compress(b"a", asbytes=True)) == "zstd"
    assert compression_of(b"a,b\n") == compression_of(b"") == "none"


def test_compression_that_is_said(tmp_path):
    path = tmp_path / "a.csv"
    for data, found in ((b"a", "none"), (b"", "none"), (gzip.compress(b"a"), "gzip")):
        path.write_bytes(data)
        check_compression(path, "auto")
        check_compression(path, found)
        with pytest.raises(IngestError, match=r"a\.csv: is .*compressed.*not what compression says, zstd"):
            check_compression(path, "zstd")
    with pytest.raises(IngestError, match="cannot be read: No such file"):
        check_compression(tmp_path / "b", "zstd")


def test_names_of_formats():
    assert check_format("CSV") == "csv"
    with pytest.raises(IngestError, match='"orc" is not a format; there are parquet, csv'):
        check_format("orc")
