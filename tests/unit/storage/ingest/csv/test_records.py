import csv
import io

import hypothesis.strategies as st
from hypothesis import given

from bamquery.storage.ingest.csv.records import read_records

FIELDS = st.text(st.sampled_from('ab,;"\n\r é#'), max_size=6)


@given(st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=5), st.sampled_from(",;"))
def test_what_the_standard_library_writes(records, delimiter):
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows(records)
    lines = io.StringIO(out.getvalue(), newline="")
    assert list(read_records(lines, delimiter)) == records


@given(st.text(st.sampled_from('ab,"\n é'), max_size=20))
def test_any_text_as_the_standard_library_reads_it(text):
    """Also quotes that nothing closes, and text behind a closing quote."""
    expected = list(csv.reader(io.StringIO(text, newline=""), delimiter=","))
    found = list(read_records(io.StringIO(text, newline=""), ","))
    assert found == expected


def test_a_field_of_any_length():
    long = "x" * 200_000
    assert list(read_records([f"{long},1\n", f'"{long}\n', f'{long}",2\n'], ",")) == [
        [long, "1"],
        [f"{long}\n{long}", "2"],
    ]
