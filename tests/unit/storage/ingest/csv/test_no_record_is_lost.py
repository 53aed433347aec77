"""What a CSV or JSON writer writes is as many records again, whatever the first one is taken for."""

import csv
import datetime
import itertools
import json

import duckdb
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from bamquery.storage.ingest.csv.source import CsvReader
from bamquery.storage.ingest.json.source import JsonReader
from tests.selection.effort import effort

STAMPS = ["%Y-%m-%d %H:%M:%S.%f", "%m/%d/%Y %I:%M:%S %p", "%Y-%m-%d %H:%M:%S EST", "%Y-%m-%dT%H:%MZ"]
NAMES = ["id", "day", "größe", "x y", "A"]
DAYS = st.dates(datetime.date(1970, 1, 1), datetime.date(2050, 1, 1))
MOMENTS = st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2050, 1, 1))
KINDS = [
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(["true", "false"]),
    MOMENTS.map(lambda moment: moment.strftime("%H:%M:%S")),
    *(
        DAYS.map(lambda day, form=form: day.strftime(form))
        for form in ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%y-%m-%d", "%d %m %Y")
    ),
    *(MOMENTS.map(lambda moment, form=form: moment.strftime(form)) for form in STAMPS),
]
TEXTS = st.text(st.sampled_from("ab é,;\"\n#|'\\"), min_size=1, max_size=5).filter(str.strip)


@st.composite
def tables(draw, *, texts):
    """Rows of at least one column of values; of others there may be texts."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    if texts and draw(st.booleans()):
        kinds.append(TEXTS)
    rows = draw(st.lists(st.tuples(*kinds), min_size=1, max_size=6))
    # Nulls, but not in the first record: one of nothing else has the names.
    holes = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=2))
    return [
        [None if (i, k) in holes and len(row) > 1 else value for k, value in enumerate(row)]
        for i, row in enumerate(rows)
    ]


@pytest.fixture
def path(tmp_path):
    numbers = itertools.count()
    return lambda suffix: tmp_path / f"{next(numbers)}{suffix}"


pytestmark = pytest.mark.long
lenient = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=effort(50, 2000))


@lenient
@given(rows=tables(texts=False), delimiter=st.sampled_from(",;\t|"), has_header=st.booleans())
def test_csv_of_values(path, rows, delimiter, has_header):
    """With names or without: values tell which."""
    file = path(".csv")
    with file.open("w", newline="") as out:
        writer = csv.writer(out, delimiter=delimiter)
        if has_header:
            writer.writerow(NAMES[: len(rows[0])])
        writer.writerows(rows)
    reader = CsvReader(file, "x")
    assert reader.rows == len(rows)
    assert (reader.schema.names == NAMES[: len(rows[0])]) is has_header
    assert sum(chunk.batch.num_rows for chunk in reader.read([0], [reader.schema.types[0]])) == len(rows)


@lenient
@given(rows=tables(texts=True))
def test_csv_with_texts_and_names(path, rows):
    file = path(".csv")
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([NAMES[: len(rows[0])], *rows])
    reader = CsvReader(file, "x")
    assert reader.rows == len(rows)
    assert sum(chunk.batch.num_rows for chunk in reader.read([0], [reader.schema.types[0]])) == len(rows)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=effort(15, 500))
@given(rows=tables(texts=True), has_header=st.booleans())
def test_csv_that_duckdb_writes(path, rows, has_header):
    file = path(".csv")
    with duckdb.connect() as connection:
        columns = ", ".join(f'"{name}" VARCHAR' for name in NAMES[: len(rows[0])])
        connection.execute(f"CREATE TABLE t ({columns})")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
        connection.execute(f"COPY t TO '{file}' (HEADER {has_header})")
    reader = CsvReader(file, "x")
    if reader.dialect.has_header is has_header:
        assert reader.rows == len(rows)
    else:
        # A record of texts can be names; no other one can.
        assert not has_header
        assert reader.rows == len(rows) - 1


@lenient
@given(rows=tables(texts=True), is_array=st.booleans())
def test_json(path, rows, is_array):
    file = path(".json")
    objects = [dict(zip(NAMES, row, strict=False)) for row in rows]
    file.write_text(json.dumps(objects) if is_array else "\n".join(map(json.dumps, objects)))
    reader = JsonReader(file, "x")
    assert reader.rows == len(rows)
    assert sum(chunk.batch.num_rows for chunk in reader.read([0], [reader.schema.types[0]])) == len(rows)
