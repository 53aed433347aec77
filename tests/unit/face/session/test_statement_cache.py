"""A query that is asked again answers as if it were asked for the first time, whatever happened between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import BamQueryError, SqlError
from bamquery.session import optimized_plans, statement_cache


@pytest.fixture
def con(tmp_path: Path) -> Iterator[bamquery.Connection]:
    with bamquery.connect(tmp_path / "t.bq", device="cpu") as con:
        con.sql("CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, NULL)) v(a, b)")
        yield con


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were bound."""
    texts: list[str] = []
    bind = statement_cache.bind

    def noted(text: str, *rest: object) -> object:
        texts.append(text)
        return bind(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(statement_cache, "bind", noted)
    return texts


QUERY = "SELECT sum(a) AS s, count(b) AS n FROM t WHERE a >= 2"


def test_the_second_time_nothing_is_bound(con: bamquery.Connection, bound: list[str]) -> None:
    answers = [con.sql(QUERY).fetchall() for _ in range(4)]
    assert answers == [[(5, 1)]] * 4
    assert bound == [QUERY]


def test_from_the_third_time_on_nothing_is_optimised(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for query in (QUERY, "SELECT b FROM (SELECT * FROM t WHERE a > 1) WHERE b < 30"):
        answers = [con.sql(query).fetchall() for _ in range(2)]
        with monkeypatch.context() as patched:
            patched.setattr(optimized_plans, "optimize", lambda plan: pytest.fail("it was optimised"))
            relation = con.sql(query)
            assert [relation.fetchall(), relation.set_alias("x").fetchall()] == answers
            assert "Scan" in relation.explain()


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ("INSERT INTO t VALUES (7, 70)", (12, 2)),
        ("CREATE OR REPLACE TABLE t AS SELECT 2.5 AS a, 1 AS b", (2.5, 1)),
        ("DROP TABLE t; CREATE TABLE t AS SELECT 4 AS b, 9 AS a", (9, 1)),
        ("ALTER TABLE t ADD COLUMN c INTEGER", (5, 1)),
        ("ALTER TABLE t RENAME COLUMN b TO x; ALTER TABLE t RENAME COLUMN a TO b; "
         "ALTER TABLE t RENAME COLUMN x TO a", (30, 2)),
        ("DROP TABLE t; CREATE VIEW t AS SELECT 3 AS a, 'x' AS b", (3, 1)),
    ],
)  # fmt: skip
def test_changed_tables_are_bound_anew(
    con: bamquery.Connection, bound: list[str], change: str, answer: tuple[object, ...]
) -> None:
    for _ in range(3):
        assert con.sql(QUERY).fetchall() == [(5, 1)]
    con.sql(change)
    bound.clear()
    for _ in range(3):
        (found,) = con.sql(QUERY).fetchall()
        assert tuple(map(float, found)) == tuple(map(float, answer))
    assert bound


def test_another_connection_changes_a_table(con: bamquery.Connection, tmp_path: Path) -> None:
    assert [con.sql(QUERY).fetchall() for _ in range(3)] == [[(5, 1)]] * 3
    with bamquery.connect(tmp_path / "t.bq", device="cpu") as other:
        other.sql("INSERT INTO t VALUES (5, 5)")
    assert con.sql(QUERY).fetchall() == [(10, 2)]


def test_a_table_that_is_gone(con: bamquery.Connection) -> None:
    for _ in range(2):
        con.sql(QUERY).fetchall()
    con.sql("DROP TABLE t")
    with pytest.raises(SqlError, match="t"):
        con.sql(QUERY)


def test_objects_that_hide_a_table(con: bamquery.Connection) -> None:
    for _ in range(2):
        con.sql(QUERY).fetchall()
    con.register("t", pa.table({"a": [8], "b": [None]}))
    assert con.sql(QUERY).fetchall() == [(8, 0)]
    con.unregister("t")
    assert con.sql(QUERY).fetchall() == [(5, 1)]


def test_variables_and_files_are_looked_at_each_time(
    con: bamquery.Connection, bound: list[str], tmp_path: Path
) -> None:
    for value in (1, 2, 3):
        frame = pa.table({"a": [value]})
        assert con.sql("SELECT a FROM frame").fetchall() == [(value,)]
        path = tmp_path / "f.csv"
        path.write_text(f"a\n{value}\n")
        assert con.sql(f"SELECT f.a FROM '{path}' AS f JOIN t ON t.a = 1").fetchall() == [(value,)]
        assert frame.num_rows == 1
    assert len(bound) == 6


def test_time_goes_on(con: bamquery.Connection) -> None:
    moments = [con.sql("SELECT max(now()) FROM t").fetchall() for _ in range(4)]
    assert len({str(moment) for moment in moments}) == 4
    con.sql("CREATE TABLE log (a INT, at TIMESTAMPTZ DEFAULT now())")
    for _ in range(3):
        con.sql("INSERT INTO log (a) VALUES (1)")
    con.load("log", pa.table({"a": [1]}), if_exists="append")
    assert con.sql("SELECT count(DISTINCT at) FROM log").fetchall() == [(4,)]


def test_several_statements_all_run(con: bamquery.Connection, bound: list[str]) -> None:
    text = "SELECT a FROM t WHERE a = 1; SELECT a FROM t WHERE a = 2"
    for _ in range(3):
        assert [relation.fetchall() for relation in con.statements(text)] == [[(1,)], [(2,)]]
        assert next(con.statements(text)).fetchall() == [(1,)]
    assert len(bound) == 6


def test_parameters_are_not_mixed_up(con: bamquery.Connection) -> None:
    for value in (1, 2, 1):
        assert con.sql("SELECT a FROM t WHERE a = ?", [value]).fetchall() == [(value,)]
    with pytest.raises(BamQueryError):
        con.sql("SELECT a FROM t WHERE a = ?")


def test_relations_over_it_and_explain(con: bamquery.Connection) -> None:
    for _ in range(3):
        relation = con.sql("SELECT a, b FROM t WHERE a >= 2")
        assert relation.filter("b IS NOT NULL").fetchall() == [(2, 20)]
        assert "a >= 2" in relation.explain()
        assert relation.columns == ["a", "b"]


def test_versions_are_not_held(con: bamquery.Connection) -> None:
    """A remembered query does not keep vacuum from what it was over."""
    for _ in range(3):
        con.sql(QUERY).fetchall()
    con.sql("INSERT INTO t VALUES (7, 70)")
    con.sql("OPTIMIZE t")
    assert not con.vacuum().in_use
    assert con.sql(QUERY).fetchall() == [(12, 2)]


def test_the_oldest_is_forgotten(
    con: bamquery.Connection, bound: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statement_cache, "_MOST_QUERIES", 2)
    texts = [f"SELECT a{' + a' * n} FROM t WHERE a = 1" for n in range(3)]
    for text in (*texts, texts[2], texts[1], texts[0]):
        con.sql(text).fetchall()
    assert bound == [*texts, texts[0]]


def test_threads(con: bamquery.Connection) -> None:
    failures: list[BaseException] = []

    def ask(number: int) -> Callable[[], None]:
        def run() -> None:
            try:
                for _ in range(20):
                    assert con.sql(f"SELECT a FROM t WHERE a = {number % 3 + 1}").fetchall() == [
                        (number % 3 + 1,)
                    ]
            except BaseException as failure:
                failures.append(failure)

        return run

    threads = [threading.Thread(target=ask(n)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_what_holds_the_time_of_binding_is_bound_anew(con: bamquery.Connection, bound: list[str]) -> None:
    for query in (
        "SELECT * FROM t, (VALUES (now())) v(moment)",
        "SELECT * FROM t, range(current_date, current_date + 1, INTERVAL 1 DAY)",
    ):
        bound.clear()
        for _ in range(2):
            con.sql(query)
        assert bound == [query, query]


def test_a_deep_query_is_kept(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE deep AS SELECT 1 AS a")
    levels = "".join(f", c{i} AS (SELECT a + 1 AS a FROM c{i - 1} GROUP BY a)" for i in range(1, 250))
    text = f"WITH c0 AS (SELECT a FROM deep){levels} SELECT * FROM c249"
    assert con.sql(text).fetchall() == con.sql(text).fetchall() == [(250,)]
