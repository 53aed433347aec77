"""COPY and queries of files whose names no file system takes: errors that name them, never foreign ones."""

import pytest

import bamquery

NAMES = ["a\0b.csv", "x" * 300 + ".csv", "x/" * 3000 + "y.csv", "loop/x.csv", "/dev/null/x.csv"]
STATEMENTS = [
    "COPY t TO '{}'",
    "COPY t TO '{}' (FORMAT parquet)",
    "COPY t FROM '{}'",
    "FROM '{}'",
    "SELECT * FROM read_csv(['{}', '{}'])",
    "SELECT count(*) FROM read_json('{}')",
    "SELECT count(*) FROM read_parquet('{}')",
]


@pytest.mark.parametrize("confined", [False, True])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_names_that_cannot_be_are_errors_that_say_so(tmp_path, monkeypatch, statement, confined):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    limits = {"enable_external_access": False, "allowed_directories": [str(tmp_path)]} if confined else {}
    with bamquery.connect(**limits) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS i")
        for name in NAMES:
            with pytest.raises(bamquery.BamQueryError) as caught:
                con.sql(statement.replace("{}", name)).fetchall()
            assert not isinstance(caught.value, bamquery.InternalError)
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]
