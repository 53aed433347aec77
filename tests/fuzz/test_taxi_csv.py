"""No line of a CSV file is lost: each one is a row, is told with its number, or is blank."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.queries.trips.convert import tidy
from bamquery.queries.trips.csv_blocks import CsvFile
from bamquery.storage.ingest.csv import blocks as ingest_blocks
from tests.selection.effort import effort

HEADER = b"VendorID,tpep_pickup_datetime,trip_distance,SR_Flag,Dispatching_base_num,unknown"
PIECES = st.sampled_from(
    b"""1|2|CMT|| |"|""|"x"|'|2015-01-01 00:00:00|2015-13-01|.5|-0|1e400|nan|NULL|x,y|99999|1.5|B0""".split(
        b"|"
    )
    + b"\xff|\xc3\xa9|\r|\t|\0".split(b"|")
)
FIELDS = st.lists(PIECES, min_size=0, max_size=3).map(b"".join)
LINES = st.one_of(
    st.lists(FIELDS, min_size=6, max_size=6).map(b",".join),
    st.lists(FIELDS, min_size=0, max_size=9).map(b",".join),
    st.just(b"2,2015-01-15 19:05:39,1.59,1,B02,x"),
)


@pytest.mark.long
@settings(max_examples=effort(60, 5000), deadline=None)
@given(
    lines=st.lists(LINES, max_size=12),
    end=st.sampled_from([b"\n", b"\r\n"]),
    last=st.booleans(),
    block_bytes=st.sampled_from([8, 64, 1 << 20]),
)
def test_every_line_is_accounted_for(lines: list[bytes], end: bytes, last: bool, block_bytes: int) -> None:
    content = end.join([HEADER, *lines]) + (end if last else b"")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "yellow.csv"
        path.write_bytes(content)
        file = CsvFile(path)
        seen: list[int] = []
        rows = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ingest_blocks, "BLOCK_BYTES", block_bytes)
            blocks = list(file.blocks())
        for block in blocks:
            tidied = tidy(block.arrays, file.names)
            tidied.batch.validate(full=True)
            rows += tidied.batch.num_rows
            assert tidied.batch.num_rows == len(block.lines) - len(tidied.problems)
            seen += [int(line) for line in block.lines]
            seen += [reject.line for reject in block.rejects]
    # Numbered as any editor does, by line feeds; what is left when blanks go is what must be accounted for.
    numbered = enumerate(content.split(b"\n"), 1)
    told = [number for number, line in numbered if number > 1 and line.strip()]
    assert sorted(seen) == told
    assert rows <= len(told)
