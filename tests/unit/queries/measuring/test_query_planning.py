"""`bamquery bench planning --tpch`: each query is planned new, again and with other constants."""

import json
from pathlib import Path

import pytest

import bamquery
from bamquery.queries.measuring import query_planning
from bamquery.queries.measuring.planning import main
from bamquery.queries.measuring.query_planning import Planned, measure_query, table, with_other_constants
from bamquery.queries.speed.suites import SpeedQuery, suite_queries
from bamquery.sql_frontend.text_constants import TextConstants

QUERY = """-- Who's 1st?
SELECT count(*) AS n FROM t, u WHERE t.a = u.a AND t.a < 70 AND t.s <> 'name 7' AND d < DATE '2024-03-09'
GROUP BY t.b LIMIT 5"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "t.bq"
    with bamquery.connect(path, device="cpu") as con:
        con.sql(
            "CREATE TABLE t AS SELECT range AS a, range % 7 AS b, 'name ' || range AS s, "
            "DATE '2024-01-01' + range::INTEGER AS d FROM range(99); CREATE TABLE u AS SELECT a FROM t"
        )
    return path


def test_constants_are_exchanged() -> None:
    other = with_other_constants(QUERY, 2)
    assert other.startswith("-- Who's 1st?\n")
    assert other.endswith("LIMIT 5")
    assert "t.a < 73 " in other
    assert "'na2e 7'" in other
    assert "DATE '2024-03-12'" in other
    for query in suite_queries("tpch"):
        texts = {with_other_constants(query.sql, step) for step in range(1, 9)}
        assert len(texts) == 8
        assert len({TextConstants.split(text).shape for text in (query.sql, *texts)}) == 1


def test_steps_are_told(database: Path) -> None:
    with bamquery.connect(database, device="cpu", threads=1) as con:
        found = measure_query(con, "x", QUERY, 3)
    assert set(found.steps) == {"parse", "bind", "fold", "rules", "lower"}
    assert "order_joins" in found.rules
    assert min(found.new, found.again, found.other) > 0


def test_the_record(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(query_planning, "suite_queries", lambda suite: (SpeedQuery(suite, "01", QUERY),))
    files = ["--json", str(tmp_path / "x.json"), "--markdown", str(tmp_path / "x.md")]
    assert main(["--tpch", str(database), "--repeat", "2", *files]) == 0
    record = json.loads((tmp_path / "x.json").read_text())
    assert [one["name"] for one in record["results"]] == ["01"]
    assert (tmp_path / "x.md").read_text() == capsys.readouterr().out


def test_the_table() -> None:
    steps = dict.fromkeys(("parse", "bind", "fold", "rules", "lower"), 0.001)
    lines = table(
        [Planned("a", 0.01, 0.001, 0.002, steps), Planned("b", 0.02, 0.002, 0.004, steps)]
    ).splitlines()
    assert lines[2] == "| a | 10.00 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 | 2.00 |"
    assert lines[4].startswith("| mean | 15.00 |")
    assert lines[5].endswith("| 2.00 | 4.00 |")
