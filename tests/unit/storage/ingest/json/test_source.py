"""JSON files as rows: DuckDB's rows and types, or an error in words of our own."""

import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import BamQueryError, CancelledError
from bamquery.statement_context.cancellation import use_cancellation_check
from bamquery.storage.ingest.json import blocks as json_blocks
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.ingest.sources.options import FileOptions
from tests.oracle import connect
from tests.sql.script import render_table


@pytest.fixture
def ours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with bamquery.connect(device="cpu") as connection:
        yield connection


@pytest.fixture
def theirs(ours):
    with connect() as connection:
        yield connection


def declared(*kinds):
    members = ", ".join(f"'{name}': '{kind}'" for name, kind in zip("ab", kinds, strict=False))
    return f"FROM read_json('f.json', columns={{{members}}})"


INFERRED = "FROM 'f.json'"


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        # nulls in the place of objects
        ('null\n{"a":1}', INFERRED),
        ('[null,{"a":1}]', INFERRED),
        ('{"a":1}\nnull\n{"a":2}', INFERRED),
        ('null\n{"a":"2024-01-01"}\n{"a":null}', INFERRED),
        ('null\n{"a":"2024-01-01 10:00:00","b":1.5}\n{"b":2}', INFERRED),
        ("null\n", declared("VARCHAR", "INTEGER")),
        ('[null,{"a":1}]', declared("INTEGER", "DATE")),
        # integers
        ('{"a":9007199254740993}\n{"a":9223372036854775809}', INFERRED),
        ('{"a":18446744073709551615}\n{"a":-1}', INFERRED),
        ('{"a":18446744073709551616}\n{"a":-1}', INFERRED),
        ('{"a":-9223372036854775808}', INFERRED),
        ('{"a":-9223372036854775809}', INFERRED),
        ('{"a":9223372036854775808}\n{"a":1.5}', INFERRED),
        ('{"a":1e19}\n{"a":1}', INFERRED),
        ('{"a":1e400}\n{"a":1}', INFERRED),
        ('{"a":NaN}\n{"a":-Infinity}', INFERRED),
        ('{"a":18446744073709551615}\n{"a":9007199254740993}', declared("UBIGINT")),
        ('{"a":18446744073709551615}\n{"a":9007199254740993}', declared("HUGEINT")),
        ('{"a":18446744073709551615}\n{"a":9007199254740993}', declared("DOUBLE")),
        ('{"a":-12345678901234567890123456789012345678}', declared("HUGEINT")),
        # what is declared decides
        ('{"a":1}\n{"a":2.50}\n{"a":12345678901234567890123}', declared("VARCHAR")),
        ('{"a":-0}\n{"a":-0.0}\n{"a":1e5}\n{"a":1e16}\n{"a":1E400}\n{"a":1e-7}', declared("VARCHAR")),
        ('{"a":1}\n{"a":"x"}\n{"a":true}\n{"a":null}', declared("VARCHAR")),
        ('{"a":[1, 2]}\n{"a":{"b" : 1.0,"c":null}}\n{"a":"x\\n\\u00e9"}', declared("VARCHAR")),
        ('{"a":"2024-01-01T10:00:00"}\n{"a":"2024-01-02"}', declared("VARCHAR")),
        ('{"a":null}\n{}', declared("DATE", "TIMESTAMP")),
        ('{"a":"2024-01-01","b":"2024-01-01"}\n{}', declared("DATE", "TIMESTAMP")),
        ('{"a":"2024-01-01 10:00:00","b":"2024-01-01 10:00:00"}', declared("DATE", "TIMESTAMP")),
        ('{"a":"10:00:00","b":"1 day"}', declared("TIME", "INTERVAL")),
        ('{"a":"ab"}', declared("BLOB")),
        ('{"a":2.5}\n{"a":3.5}\n{"a":0.5}\n{"a":1e3}', declared("BIGINT")),
        ('{"a":2.5}\n{"a":3.5}\n{"a":0.5}\n{"a":1e3}', declared("HUGEINT")),
        ('{"a":"5"}\n{"a":6}\n{"a":true}', declared("SMALLINT")),
        ('{"a":"1.50"}\n{"a":2}\n{"a":0.25}', declared("DECIMAL(10,2)")),
        ('{"a":"1.50"}\n{"a":2}\n{"a":true}\n{"a":null}', declared("DOUBLE")),
        ('{"a":"true"}\n{"a":2}\n{"a":0}\n{"a":false}', declared("BOOLEAN")),
        ('{"a":1,"b":[1]}\n{"a":2,"b":{"c":3}}', declared("INTEGER")),
        ('{"a":1,"A":2,"b":3}', declared("INTEGER", "INTEGER")),
        ('{"a":1,"a":2,"b":3}', "FROM read_json('f.json', columns={'b': 'VARCHAR'})"),
        ('{"A":1}', declared("INTEGER")),
        # dates and times
        *(
            (f'{{"a":"{text}"}}\n{{"a":null}}', INFERRED)
            for text in (
                *(
                    "03-27-1996",
                    "96-03-27",
                    "27-03-1996",
                    "01-02-2000",
                    "2000-1-5",
                    " 2000-01-05",
                    "10:00",
                    "9:05:01",
                ),
                *(
                    "01/02/2000",
                    "2000/01/05",
                    "2000.01.05",
                    "01 02 2000",
                    "20200101",
                    "2000-02-30",
                    "12345-01-01",
                ),
                *("2024-01-01T10:00:00Z", "2024-01-01 10:00:00+02", "2024-01-01T10:00:00.5-05:30"),
                *(
                    "2024-01-01T10:00:00",
                    "2024-01-01 10:00:00.5",
                    "2024-01-01 10:00",
                    "2024-01-01 10:00:00 EST",
                ),
                *("01-25-2000 12:12:00 AM", "25-01-2000 12:12:00", "00-01-25 12:12:00"),
            )
        ),
        ('{"a":"2024-01-01 10:00:00+02"}\n{"a":"2024-01-01 10:00:00"}', INFERRED),
        ('{"a":"01-02-2000"}\n{"a":"25-02-2000"}', INFERRED),
        ('{"a":"20200131","b":"20200131"}', "FROM read_json('f.json', dateformat='%Y%m%d')"),
        ('{"a":"5.1.2020 10h30"}', "FROM read_json('f.json', timestampformat='%d.%m.%Y %Hh%M')"),
        (
            '{"a":"31/01/2020"}',
            "FROM read_json('f.json', columns={'a': 'DATE'}, date_format='%d/%m/%Y', sample_size=-1)",
        ),
        # layouts
        ('{\n"a":1\n}\n{\n"a":2\n}', INFERRED),
        ('{"a":1,\n"b":"}\\n{"}\n\n{"a":2}', INFERRED),
        ('{\n"a":1\n}\n{\n"a":2\n}', declared("VARCHAR")),
        ('{"a":1}\n{\n"a":2}', "FROM read_json('f.json', format='unstructured')"),
        ('{"a":1}{"a":2} {"a":3}', INFERRED),
        ("[]", declared("INTEGER", "DATE")),
        ("", declared("INTEGER", "DATE")),
        (" \n", declared("VARCHAR")),
    ],
)
def test_rows_are_duckdbs(ours, theirs, tmp_path, text, sql):
    (tmp_path / "f.json").write_text(text)
    expected = theirs.sql(sql).to_arrow_table()
    assert render_table(ours.sql(sql).to_arrow()) == render_table(expected)
    given, counted = ours.sql(sql), f"SELECT count(*) FROM ({sql})"
    assert given.columns == expected.column_names
    assert ours.sql(counted).fetchall() == theirs.sql(counted).fetchall()


@pytest.mark.parametrize("text", ["", " \n", "[]", "[ ]"])
def test_a_file_without_rows_has_none(ours, theirs, tmp_path, text):
    (tmp_path / "f.json").write_text(text)
    assert ours.sql(INFERRED).columns == theirs.sql(INFERRED).columns == ["json"]
    assert ours.sql(INFERRED).fetchall() == theirs.sql(INFERRED).fetchall() == []


@pytest.mark.parametrize("text", ["null\n", "[null]", "null\nnull"])
def test_a_file_of_nulls_has_rows_of_them(ours, theirs, tmp_path, text):
    (tmp_path / "f.json").write_text(text)
    assert ours.sql(INFERRED).columns == theirs.sql(INFERRED).columns == ["json"]
    assert ours.sql(INFERRED).fetchall() == theirs.sql(INFERRED).fetchall()


def test_files_without_members_go_with_others(ours, tmp_path):
    for name, text in (("1", ""), ("2", '{"a":1}'), ("3", "null"), ("4", "[]")):
        (tmp_path / f"{name}.json").write_text(text)
    assert ours.sql("FROM '*.json'").columns == ["a"]
    assert ours.sql("FROM '*.json' ORDER BY a").fetchall() == [(1,), (None,)]


def test_objects_without_members_are_rows_of_declared_columns(ours, tmp_path):
    (tmp_path / "f.json").write_text("{}\n{}")
    assert ours.sql(declared("INTEGER", "DATE")).fetchall() == [(None, None)] * 2


def test_decimals_are_what_is_written(ours, theirs, tmp_path):
    # DuckDB makes a DOUBLE of the number first.
    (tmp_path / "f.json").write_text('{"a":12345678901234567.25}\n{"a":1.005}')
    assert [str(value) for (value,) in ours.sql(declared("DECIMAL(20,2)")).fetchall()] == [
        "12345678901234567.25",
        "1.01",
    ]


@pytest.mark.parametrize(
    ("text", "sql", "message"),
    [
        ('{"a":1}\n{"a":"x"}', INFERRED, 'line 2: member "a" is a text, and a number before'),
        ('[{"a":1},{"a":true}]', INFERRED, 'object 2: member "a" is a boolean, and a number before'),
        ('{"a":1}\n\n5', INFERRED, "line 3: is a number, not an object"),
        (
            '[{"a":1}]',
            "FROM read_json('f.json', format='newline_delimited')",
            "line 1: is an array, not an object; format='array' reads",
        ),
        ("[1, 2]", INFERRED, "object 1: is a number, not an object"),
        ('{"a":1}\n{"a":', INFERRED, "line 2: is not JSON"),
        ('{"a":1}\n{\n"a":2}', INFERRED, "format='unstructured'"),
        ('{"a":1,"a":2}', INFERRED, 'line 1: has member "a" twice'),
        ('{"a":1}\n{"a":1,"a":2}', declared("VARCHAR"), 'line 2: has member "a" twice'),
        ('{"a":"\\ud800"}', INFERRED, 'line 1: member "a" has half a surrogate pair'),
        ('{"\\ud800":1}', INFERRED, "line 1: the name of a member has half a surrogate pair"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, INFERRED, "line 1: is nested too deeply"),
        ("[" * 50_000, INFERRED, "object 1: is nested too deeply"),
        ('{"a":"\udcff"}', INFERRED, "line 1: is not UTF-8"),
        ('{"a":"\udcff"}' + "[" * 200, INFERRED, "line 1: is not UTF-8"),
        ("null\n[\udcff]", declared("VARCHAR"), "is not UTF-8"),
        ("{}", INFERRED, "no objects with members"),
        ('{"a":"x"}', declared("INTEGER"), "'x'"),
        ('{"a":18446744073709551616}', declared("UBIGINT"), "18446744073709551616"),
        ('{"a":300000000000000000000000000000000000000000000}', declared("HUGEINT"), "30000000"),
        ('{"a":1}', "FROM read_json('f.json', columns=['INTEGER'])", "types by name"),
    ],
)
def test_what_cannot_be_rows_is_said(ours, tmp_path, text, sql, message):
    (tmp_path / "f.json").write_text(text, "utf-8", "surrogateescape")
    with pytest.raises(BamQueryError) as caught:
        ours.sql(sql).fetchall()
    assert message in str(caught.value)
    assert "Column()" not in str(caught.value)


@pytest.mark.parametrize(
    "rows",
    [
        "(9007199254740993::HUGEINT, 'x', DATE '2024-01-01', 1.50), (9223372036854775809, '1', NULL, 0.01)",
        "(NULL, '2024-01-01', NULL, NULL), (1, NULL, NULL, 12345678901234567.89)",
        "(1, '01', DATE '2024-01-01', 2), (2, '{}', DATE '0001-01-01', 3)",
    ],
)
def test_what_is_written_is_read_back(ours, rows):
    ours.sql("CREATE TABLE q (a HUGEINT, b VARCHAR, c DATE, d DECIMAL(20,2)); CREATE TABLE r AS FROM q")
    ours.sql(f"INSERT INTO q VALUES {rows}; COPY q TO 'q.json'; COPY r FROM 'q.json'")
    assert ours.sql("FROM r").fetchall() == ours.sql("FROM q").fetchall()


@pytest.mark.parametrize(
    "copy",
    ["COPY t FROM 'f.json'", "COPY t (b, a) FROM 'f.json'", "COPY t (b) FROM 'f.json'"],
)
@pytest.mark.parametrize("text", ['{"z":1,"b":"x"}\n{"a":5}', "", "null", '{"a":null,"b":7}'])
def test_copy_takes_members_by_name(ours, theirs, tmp_path, copy, text):
    (tmp_path / "f.json").write_text(text)
    for connection in (ours, theirs):
        connection.sql("CREATE TABLE t (a INTEGER DEFAULT 3, b VARCHAR)")
        connection.sql(copy)
    assert ours.sql("FROM t").fetchall() == theirs.sql("FROM t").fetchall()


def test_types_are_found_over_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("bamquery.storage.ingest.json.blocks._BLOCK_BYTES", 64)
    rows = [f'{{"a": {i}, "d": "2024-01-{i % 28 + 1:02}"}}' for i in range(100)]
    rows[50:50] = ["null", '{"a": 18446744073709551615}']
    for name, text in (("lines", "\n".join(rows)), ("array", "[" + ",".join(rows) + "]")):
        path = tmp_path / f"{name}.json"
        path.write_text(text)
        source = open_source(path)
        assert source.schema == pa.schema({"a": pa.decimal128(38, 0), "d": pa.date32()})
        values = [value for batch in source.batches(["a"]) for value in batch.column(0).to_pylist()]
        assert len(values) == 102 == source.total_rows
        assert sum(value for value in values if value is not None) == 4950 + 18446744073709551615
        texts = open_source(path, options=FileOptions(members=(("a", pa.large_string()),)))
        first = next(iter(texts.batches())).column(0)
        assert first[0].as_py() == "0"


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "f.json"
    path.write_text('{"a":1}')
    source = open_source(path)
    path.write_text('{"a":"x"}')
    with pytest.raises(BamQueryError, match="changed"):
        list(source.batches())


def test_one_format_for_all_texts_of_a_member(ours, tmp_path):
    """Unlike in DuckDB, where each text has the first format that fits it."""
    (tmp_path / "f.json").write_text('{"a":"01-02-2000"}\n{"a":"02-25-2000"}')
    assert [str(day) for (day,) in ours.sql(INFERRED).fetchall()] == ["2000-01-02", "2000-02-25"]


@pytest.mark.parametrize("is_array", [False, True])
def test_a_long_text_is_looked_at_a_few_times(tmp_path, monkeypatch, is_array):
    monkeypatch.setattr(json_blocks, "_BLOCK_BYTES", 1 << 10)
    path = tmp_path / "f.json"
    text = '{"a":"' + "x" * (1 << 20) + '"}\n{"a":"y"}'
    path.write_text(f"[{text}]".replace("\n", ",") if is_array else text)
    calls = []
    found_end = json_blocks._value_end
    monkeypatch.setattr(json_blocks, "_value_end", lambda *args: calls.append(1) or found_end(*args))
    blocks = list(json_blocks.read_json_blocks(path, "array" if is_array else "lines"))
    assert sum(len(block.data) for block in blocks) >= 1 << 20
    assert len(calls) < 20


def test_every_block_asks_whether_it_was_cancelled(tmp_path, monkeypatch):
    monkeypatch.setattr(json_blocks, "_BLOCK_BYTES", 64)
    path = tmp_path / "f.json"
    path.write_text('{"a":1}\n' * 1000)
    asked = []

    def check():
        asked.append(1)
        if len(asked) == 20:
            raise CancelledError("the statement was cancelled")

    with use_cancellation_check(check), pytest.raises(CancelledError):
        open_source(path)
    assert len(asked) == 20
