"""Sizes of column chunks, read without Arrow, and footers at which Arrow ends the process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.ingest.parquet.footer import column_chunks


def footer_start(content: bytes) -> int:
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def framed(footer: bytes) -> bytes:
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Columns of every shape in four row groups, with every kind of statistics."""
    table = pa.table(
        {
            "i": range(100),
            "list": [[1, 2], None] * 50,
            "struct": [{"a": 1.5, "b": "x"}] * 100,
            "map": pa.array([[("key", 1)]] * 100, pa.map_(pa.string(), pa.int64())),
            "flag": [True, None] * 50,
            "text": ["a" * 300, "b"] * 50,
        }
    )
    path = tmp_path / "x.parquet"
    pq.write_table(
        table,
        path,
        row_group_size=30,
        use_dictionary=["text", "struct.b"],
        write_page_index=True,
        store_decimal_as_integer=True,
        sorting_columns=[pq.SortingColumn(0)],
        bloom_filter_options={"i": {"ndv": 100}},
    )
    return path


def test_the_numbers_are_those_of_arrow(path: Path) -> None:
    whole = pq.read_metadata(path)
    assert list(column_chunks(path)) == [
        [(chunk.total_uncompressed_size, chunk.has_dictionary_page) for chunk in chunks]
        for chunks in (
            [whole.row_group(group).column(leaf) for leaf in range(whole.num_columns)]
            for group in range(whole.num_row_groups)
        )
    ]


@pytest.mark.parametrize(
    "member",
    [
        b"\x11",  # a boolean that is true
        b"\x13\x7f",
        b"\x15\xff\xff\xff\xff\x0f",
        b"\x17" + bytes(8),
        b"\x18\x03abc",
        b"\x1d" + bytes(16),
        b"\x06\x90\x03\x01",  # number 200 in full
        b"\x19\x21\x01\x02",  # a list of booleans
        b"\x19\xf5\x10" + bytes(16),
        b"\x19\x1c\x19\x18\x01a\x00",
        b"\x1a\x18\x01a",
        b"\x1b\x00",
        b"\x1b\x02\x81\x01a\x01\x01b\x02",
        b"\x1c\x1c\x15\x02\x00\x00",
    ],
)
def test_members_that_are_not_known_are_gone_past(tmp_path: Path, member: bytes) -> None:
    within = b"\x1c" + member + b"\x00"
    metadata = member + within + b"\x06\x0c\x0e\x56\x08\x00"  # 7 bytes; a dictionary page at 4
    groups = b"\x09\x08\x1c\x19\x1c\x3c" + metadata + bytes(2)
    path = tmp_path / "x"
    path.write_bytes(framed(member + within + groups + b"\x00"))
    assert list(column_chunks(path)) == [[(7, True)]]


def test_what_is_left_out_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(framed(b"\x00"))
    assert list(column_chunks(path)) == []
    path.write_bytes(framed(b"\x49\x1c\x19\x1c\x00\x00\x00"))
    assert list(column_chunks(path)) == [[(0, False)]]
    path.write_bytes(framed(b"\x49\x1c\x19\x1c\x3c\x66\x0d\x00\x00\x00\x00"))  # -7 bytes
    assert list(column_chunks(path)) == [[(0, False)]]


@pytest.mark.parametrize(
    ("footer", "message"),
    [
        (b"", "ends within a value"),
        (b"\x15", "ends within a value"),
        (b"\x15\xff", "ends within a value"),
        (b"\x18\x7f", "ends within a value"),
        (b"\x49\xfc\xff\xff\xff\xff\x0f", "ends within a value"),  # a list of billions
        (b"\x49\xfc" + b"\xff" * 12, "a number has more than 64 bits"),
        (b"\x1b\xff\xff\xff\xff\x0f\x11", "ends within a value"),
        (b"\x1e\x00", "there is no type 14"),
        (b"\x19\x10\x00", "there is no type 0"),
        (b"\x1c" * 5000, "structures within each other"),
        (b"\x19" + b"\x19" * 5000, "structures within each other"),
    ],
)
def test_damage(tmp_path: Path, footer: bytes, message: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(framed(footer))
    with pytest.raises(IngestError, match=message):
        list(column_chunks(path))


def test_every_beginning_of_a_footer_is_damaged(path: Path) -> None:
    content = path.read_bytes()
    footer = content[footer_start(content) : -8]
    for length in range(0, len(footer), 7):
        path.write_bytes(framed(footer[:length]))
        with pytest.raises(IngestError, match="ends within a value"):
            list(column_chunks(path))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\x01\x00\x00\x00PAR1", b"PAR1\x00\x00\x00\x00PAR2"])
def test_files_that_are_cut_off(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(IngestError, match="cut off"):
        list(column_chunks(path))


def required(footer: bytes) -> bytes:
    """One level of definition less than its histograms count."""
    return footer.replace(b"\x25\x02\x18\x04flag", b"\x25\x00\x18\x04flag")


def encrypted(footer: bytes) -> bytes:
    """The first chunk, of whose members the second and third follow each other, gets the eighth: a key."""
    start = footer.index(b"\x26\x00\x1c\x15") + 2
    return footer[:start] + b"\x6c\x2c\x19\x18\x04flag\x00\x00\x0c\x06" + footer[start + 1 :]


@pytest.mark.parametrize("damage", [required, encrypted])
def test_arrow_is_not_asked_where_it_would_end_the_process(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"flag": [1, None], "i": [1, 2]}), path)
    content = path.read_bytes()
    start = footer_start(content)
    damaged = damage(content[start:-8])
    assert damaged != content[start:-8]
    path.write_bytes(content[:start] + framed(damaged)[4:])
    source = open_source(path)
    assert [batch.num_rows for batch in source.batches(["i"])] == [2]
    with pytest.raises(IngestError, match='row group 0, column "flag": cannot be read'):
        list(source.batches())
