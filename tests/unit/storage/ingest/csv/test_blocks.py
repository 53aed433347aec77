import csv
import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.errors import IngestError
from bamquery.storage.ingest.csv import blocks as csv_blocks
from bamquery.storage.ingest.csv.blocks import find_bad_record, find_bad_text, read_blocks
from bamquery.storage.ingest.csv.dialect import Dialect


def dialect(fields=2, newline=b"\n", start=0, delimiter=","):
    return Dialect(
        delimiter,
        newline,
        tuple("abcdef"[:fields]),
        unnamed=0,
        start=start,
        first_line=1,
        first=(),
        has_header=False,
        nulls=("",),
    )


DIALECT = dialect()


@pytest.fixture
def blocks_of(tmp_path, monkeypatch):
    def read(data, size, dialect=DIALECT):
        monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", size)
        path = tmp_path / "x.csv"
        path.write_bytes(data)
        return list(read_blocks(path, dialect))

    return read


def records(data, delimiter=","):
    return list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))


FIELD = st.text(st.sampled_from('a,"\n\r;é '), max_size=6)


@given(
    st.lists(st.lists(FIELD, min_size=2, max_size=2), min_size=1, max_size=12),
    st.integers(1, 40),
    st.sampled_from(["\n", "\r\n"]),
)
def test_blocks_hold_whole_records(tmp_path_factory, rows, size, terminator):
    text = io.StringIO()
    # Python's writer leaves a carriage return without quotes where it is not the line's end.
    bare = any("\r" in field for row in rows for field in row)
    csv.writer(
        text, lineterminator=terminator, quoting=csv.QUOTE_ALL if bare else csv.QUOTE_MINIMAL
    ).writerows(rows)
    data = text.getvalue().encode()
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    path.write_bytes(data)
    before, csv_blocks.BLOCK_BYTES = csv_blocks.BLOCK_BYTES, size
    try:
        blocks = list(read_blocks(path, dialect()))
    finally:
        csv_blocks.BLOCK_BYTES = before
    assert b"".join(block.data for block in blocks) == data
    assert [record for block in blocks for record in records(block.data)] == rows
    line = 1
    for block in blocks:
        assert block.first_line == line
        line = block.last_line + 1
    assert sum(block.source_bytes for block in blocks) == len(data)


@pytest.mark.parametrize("size", range(1, 30))
def test_quotes_inside_plain_fields_are_text(blocks_of, size):
    data = b'5" pipe,1\n6",2\n"a\nb",3\n"x""\n""y",4\nz,"5"\n'
    rows = [record for block in blocks_of(data, size) for record in records(block.data)]
    assert rows == [['5" pipe', "1"], ['6"', "2"], ["a\nb", "3"], ['x"\n"y', "4"], ["z", "5"]]


def test_carriage_returns_alone(blocks_of):
    blocks = blocks_of(b"1,2\r3,4\r5,6", 5, dialect(newline=b"\r"))
    assert [(block.data, block.first_line) for block in blocks] == [(b"1,2\r", 1), (b"3,4\r", 2), (b"5,6", 3)]


def test_gzip_reports_compressed_bytes(tmp_path):
    data = b"".join(b"%d,%d\n" % (i, i * i) for i in range(50_000))
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(data))
    blocks = list(read_blocks(path, dialect()))
    assert b"".join(block.data for block in blocks) == data
    assert sum(block.source_bytes for block in blocks) == path.stat().st_size


def test_damaged_gzip(tmp_path):
    whole = gzip.compress(b"1,2\n" * 100_000 + bytes(range(48, 58)) * 1000)
    path = tmp_path / "x.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(IngestError, match=r"x\.csv\.gz: is a truncated gzip file"):
        list(read_blocks(path, dialect()))
    path.write_bytes(whole[:20] + bytes([whole[20] ^ 0xFF, whole[21] ^ 0xFF]) + whole[22:])
    with pytest.raises(IngestError, match=r"x\.csv\.gz: cannot be read"):
        list(read_blocks(path, dialect()))


def zstd(data):
    return pa.Codec("zstd").compress(data, asbytes=True)


def test_zstd_reports_compressed_bytes(tmp_path):
    data = b"".join(b"%d,%d\n" % (i, i * i) for i in range(50_000))
    path = tmp_path / "x.csv"  # the first bytes tell, not the name
    path.write_bytes(zstd(data) + zstd(data))
    blocks = list(read_blocks(path, dialect()))
    assert b"".join(block.data for block in blocks) == data * 2
    assert sum(block.source_bytes for block in blocks) == path.stat().st_size


def test_damaged_zstd(tmp_path):
    whole = zstd(b"".join(b"%d,%d\n" % (i, i * i) for i in range(50_000)))
    path = tmp_path / "x.csv.zst"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(IngestError, match=r"x\.csv\.zst: is a truncated zstd file"):
        list(read_blocks(path, dialect()))
    path.write_bytes(whole + b"garbage")
    with pytest.raises(IngestError, match=r"x\.csv\.zst: cannot be read"):
        list(read_blocks(path, dialect()))


def test_a_quote_that_is_never_closed(blocks_of, monkeypatch):
    monkeypatch.setattr(csv_blocks, "_LONGEST_RECORD", 100)
    with pytest.raises(IngestError, match=r"line 3: .*quote is not closed"):
        blocks_of(b'1,2\n3,4\n5,"' + b"x" * 200, 16)
    with pytest.raises(IngestError, match=r"line 2: .*quote is not closed"):
        blocks_of(b'1,2\n5,"x\n6,7\n', 1000)


def test_errors_name_the_line(blocks_of, tmp_path):
    (block,) = blocks_of(b'1,"2\n2"\n\n3\n4,5,6\n', 1000)
    error = find_bad_record(block, dialect(), tmp_path)
    assert "line 4: has 1 field where the others have 2: 3" in str(error)
    assert find_bad_record(block, dialect(3), tmp_path).args[0].count("line 1: has 2 fields") == 1
    (block,) = blocks_of(b"1,2\n3,\xe9\n", 1000)
    assert "line 2: is not UTF-8 (byte 0xe9): convert the file (iconv" in str(find_bad_text(block, tmp_path))
