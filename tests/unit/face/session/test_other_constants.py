"""A query that was asked with other constants is not planned anew, and answers as if it were."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import BamQueryError
from bamquery.session import optimized_plans, statement_cache
from bamquery.session.known_query import KnownQuery

ROWS = """
SELECT range AS a, range % 7 AS b, range / 4.0 AS f, (range * 0.25)::DECIMAL(10, 2) AS m,
       'name ' || range AS s, DATE '2024-01-01' + range::INTEGER AS d,
       CASE WHEN range % 3 = 0 THEN 'x' ELSE 'y' END AS g
FROM range(100)
"""

JOINED = "t, u, w WHERE t.a = u.a AND t.b = w.b"


@pytest.fixture
def con(tmp_path: Path) -> Iterator[bamquery.Connection]:
    with bamquery.connect(tmp_path / "t.bq", device="cpu", threads=1) as con:
        con.sql(f"CREATE TABLE t AS {ROWS}; CREATE TABLE u AS SELECT a, b, s FROM t WHERE a < 40")
        con.sql("CREATE TABLE w AS SELECT b, count(*) AS n FROM t GROUP BY b")
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


def anew(con: bamquery.Connection, text: str) -> object:
    """The answer without a plan of before, or the error."""
    con.set("plan_cache", False)
    try:
        return answer(con, text)
    finally:
        con.set("plan_cache", True)


def answer(con: bamquery.Connection, text: str) -> object:
    try:
        relation = con.sql(text)
        table = relation.to_arrow()
        return (
            table.schema.names,
            [str(kind) for kind in table.schema.types],
            table.to_pylist(),
            relation.explain(),
        )
    except BamQueryError as error:
        return type(error), str(error)


SERVED = {
    "a comparison": ("SELECT a FROM t WHERE a > 90", "SELECT a FROM t WHERE a > 7"),
    "a decimal": ("SELECT count(*) AS n FROM t WHERE m < 1.25", "SELECT count(*) AS n FROM t WHERE m < 9.75"),
    "a date": (
        "SELECT max(a) AS m FROM t WHERE d < DATE '2024-02-01'",
        "SELECT max(a) AS m FROM t WHERE d < DATE '2024-01-05'",
    ),
    "a string that is a date": (
        "SELECT max(a) AS m FROM t WHERE d < '2024-02-01'",
        "SELECT max(a) AS m FROM t WHERE d < '2024-03-05'",
    ),
    "an interval": (
        "SELECT count(*) AS n FROM t WHERE d >= DATE '2024-01-08' + INTERVAL 1 MONTH",
        "SELECT count(*) AS n FROM t WHERE d >= DATE '2024-01-09' + INTERVAL 2 MONTH",
    ),
    "a pattern": ("SELECT a FROM t WHERE s LIKE '%9'", "SELECT a FROM t WHERE s LIKE 'name 3%'"),
    "members": (
        "SELECT a FROM t WHERE g IN ('x', 'z') AND a < 9",
        "SELECT a FROM t WHERE g IN ('y', 'q') AND a < 8",
    ),
    "an argument": ("SELECT sum(a * 3) AS x FROM t", "SELECT sum(a * 5) AS x FROM t"),
    "a quote": (
        "SELECT count(*) AS n FROM t WHERE s = 'it''s'",
        "SELECT count(*) AS n FROM t WHERE s = 'name 5'",
    ),
    "a branch": (
        "SELECT sum(CASE WHEN g = 'x' THEN 1 ELSE 0 END) AS x FROM t",
        "SELECT sum(CASE WHEN g = 'y' THEN 5 ELSE 3 END) AS x FROM t",
    ),
    "a joined table": (
        "SELECT count(*) AS n FROM t, u, w WHERE t.a = u.a AND t.b = w.b AND u.s < 'name 3' AND t.a < 20",
        "SELECT count(*) AS n FROM t, u, w WHERE t.a = u.a AND t.b = w.b AND u.s < 'name 2' AND t.a < 30",
    ),
    "a subquery": (
        "SELECT a FROM t WHERE a > (SELECT avg(a) FROM u WHERE b = 3) AND a < 25",
        "SELECT a FROM t WHERE a > (SELECT avg(a) FROM u WHERE b = 5) AND a < 24",
    ),
    "what is limited": (
        "SELECT a FROM t WHERE a > 5 ORDER BY 1 LIMIT 3",
        "SELECT a FROM t WHERE a > 6 ORDER BY 1 LIMIT 3",
    ),
    "another width": ("SELECT a FROM t WHERE a = 7", "SELECT a FROM t WHERE a = 77"),
    "equal to one that becomes another type": (
        "SELECT a FROM t WHERE m < 5 AND a > 5",
        "SELECT a FROM t WHERE m < 5 AND a > 7",
    ),
    "equal from now on to one that becomes another type": (
        "SELECT a FROM t WHERE m < 5 AND a > 7",
        "SELECT a FROM t WHERE m < 5 AND a > 5",
    ),
    "a window with a name": (
        "SELECT a, sum(b) OVER w AS x FROM t WINDOW w AS (PARTITION BY a % 3 ORDER BY a)",
        "SELECT a, sum(b) OVER w AS x FROM t WINDOW w AS (PARTITION BY a % 4 ORDER BY a)",
    ),
    "a window": (
        "SELECT a, sum(a + 1) OVER (PARTITION BY b ORDER BY a) AS x FROM t WHERE a < 9",
        "SELECT a, sum(a + 2) OVER (PARTITION BY b ORDER BY a) AS x FROM t WHERE a < 12",
    ),
}


@pytest.mark.parametrize("texts", SERVED.values(), ids=SERVED)
def test_other_constants_are_not_planned_anew(
    con: bamquery.Connection, bound: list[str], monkeypatch: pytest.MonkeyPatch, texts: tuple[str, str]
) -> None:
    expected = [anew(con, text) for text in texts]
    first, second = texts
    con.sql(first).run().close()
    bound.clear()
    monkeypatch.setattr(optimized_plans, "optimize", lambda plan: pytest.fail("it was optimised"))
    assert [answer(con, second), answer(con, first), answer(con, second)] == [
        expected[1],
        expected[0],
        expected[1],
    ]
    assert bound == []


PLANNED_ANEW = {
    "a column's name": ("SELECT a + 1 FROM t WHERE a = 2", "SELECT a + 3 FROM t WHERE a = 2"),
    "a column by number": (
        "SELECT a, b FROM t WHERE a < 20 ORDER BY 1, 2",
        "SELECT a, b FROM t WHERE a < 20 ORDER BY 2, 1",
    ),
    "a key by number": (
        "SELECT a % 2 AS x, b AS y, count(*) AS n FROM t GROUP BY 1, 2 ORDER BY ALL",
        "SELECT a % 2 AS x, b AS y, count(*) AS n FROM t GROUP BY 2, 1 ORDER BY ALL",
    ),
    "LIMIT": ("SELECT a FROM t ORDER BY a LIMIT 3", "SELECT a FROM t ORDER BY a LIMIT 5"),
    "OFFSET": ("SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 1", "SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 2"),
    "a type's parameter": ("SELECT f::DECIMAL(9, 1) AS x FROM t", "SELECT f::DECIMAL(9, 2) AS x FROM t"),
    "a larger integer": ("SELECT a + 1 AS x FROM t", "SELECT a + 10000000000000 AS x FROM t"),
    "a wider decimal": ("SELECT m * 1.5 AS x FROM t", "SELECT m * 1.55 AS x FROM t"),
    "a number that no value is": ("SELECT a FROM t WHERE a = 2.0", "SELECT a FROM t WHERE a = 2.5"),
    "a number beyond the type": (
        "SELECT count(*) AS n FROM t WHERE b < 3",
        "SELECT count(*) AS n FROM t WHERE b < 3000000000",
    ),
    "no date": ("SELECT a FROM t WHERE d = '2024-01-03'", "SELECT a FROM t WHERE d = '2024-02-30'"),
    "a cast that fails": (
        "SELECT CAST('7' AS INTEGER) AS x, a FROM t",
        "SELECT CAST('x' AS INTEGER) AS x, a FROM t",
    ),
    "equal to another": ("SELECT a FROM t WHERE a = 1 OR a = 2", "SELECT a FROM t WHERE a = 2 OR a = 2"),
    "what decides": ("SELECT a FROM t WHERE 1 = 2 OR a = 3", "SELECT a FROM t WHERE 2 = 2 OR a = 3"),
    "a share": ("SELECT quantile_cont(a, 0.5) AS q FROM t", "SELECT quantile_cont(a, 0.2) AS q FROM t"),
    "a separator": ("SELECT string_agg(s, ',') AS x FROM u", "SELECT string_agg(s, ';') AS x FROM u"),
    "a unit": ("SELECT date_trunc('month', d) AS x FROM t", "SELECT date_trunc('year', d) AS x FROM t"),
    "a key that is no more": (
        "SELECT a + 1 AS x, count(*) AS n FROM t GROUP BY a + 1 ORDER BY 1",
        "SELECT a + 1 AS x, count(*) AS n FROM t GROUP BY a + 2 ORDER BY 1",
    ),
    "division by zero": ("SELECT a // 2 AS x FROM t", "SELECT a // 0 AS x FROM t"),
    "an alias that is a text": (
        'SELECT sum(a + 1) AS "sum((a + 1))" FROM t',
        'SELECT sum(a + 2) AS "sum((a + 1))" FROM t',
    ),
    "a sign": ("SELECT a FROM t WHERE a > -1 AND a < 3", "SELECT a FROM t WHERE a > -2 AND a < 4"),
    "an exponent": ("SELECT a FROM t WHERE f > 1e0 AND a < 9", "SELECT a FROM t WHERE f > 2e0 AND a < 9"),
    "an escape": ("SELECT a FROM t WHERE s = 'a\\' OR a = 1", "SELECT a FROM t WHERE s = 'b\\' OR a = 2"),
    "dollars": ("SELECT a FROM t WHERE s = $$name 1$$", "SELECT a FROM t WHERE s = $$name 2$$"),
    "a comment": ("SELECT a /* 1 */ FROM t WHERE a = 1 -- 'x", "SELECT a /* 2 */ FROM t WHERE a = 3 -- 'y"),
    "names in quotes": ('SELECT a AS "x 1" FROM t WHERE a = 1', 'SELECT a AS "x 2" FROM t WHERE a = 1'),
    "a sample": (
        "SELECT count(*) AS n FROM t USING SAMPLE 10",
        "SELECT count(*) AS n FROM t USING SAMPLE 20",
    ),
    "rows of the text": (
        "SELECT * FROM t, (VALUES (1)) v(x) WHERE a = 1",
        "SELECT * FROM t, (VALUES (2)) v(x) WHERE a = 1",
    ),
}


@pytest.mark.parametrize("texts", [*SERVED.values(), *PLANNED_ANEW.values()], ids=(*SERVED, *PLANNED_ANEW))
def test_answers_are_those_of_a_new_plan(con: bamquery.Connection, texts: tuple[str, str]) -> None:
    """Rows, names, types and what EXPLAIN says, or the error with its place."""
    first, second = texts
    for text in (first, second, first, second, second):
        assert answer(con, text) == anew(con, text), text


def test_errors_show_the_text_that_was_asked(con: bamquery.Connection) -> None:
    con.sql("INSERT INTO u VALUES (50, 1, 'not a number')")
    query = "SELECT '{}' AS note,\n  CAST(s AS INTEGER) AS x FROM u WHERE a = {} AND CAST(b AS TINYINT) = 1"
    for note, number in (("one", "50"), ("three\nlines\nlong", "50"), ("", "050"), ("one", "50")):
        text = query.format(note, number)
        expected = anew(con, text)
        assert answer(con, text) == expected
        assert "CAST(s AS INTEGER)" in str(expected)


def test_a_table_that_changed(con: bamquery.Connection, bound: list[str]) -> None:
    query = "SELECT count(*) AS n FROM u WHERE a > {}"
    assert con.sql(query.format(10)).fetchall() == [(29,)]
    con.sql("INSERT INTO u VALUES (90, 1, 'x')")
    assert con.sql(query.format(20)).fetchall() == [(20,)]
    assert con.sql(query.format(30)).fetchall() == [(10,)]
    assert bound.count(query.format(30)) == 0
    con.sql("DROP TABLE u; CREATE TABLE u AS SELECT 5.5 AS a")
    assert con.sql(query.format(3)).fetchall() == [(1,)]


def test_objects_and_variables(con: bamquery.Connection) -> None:
    query = "SELECT count(*) AS n FROM u WHERE a > {}"
    assert con.sql(query.format(10)).fetchall() == [(29,)]
    con.register("u", pa.table({"a": [1, 2, 3]}))
    assert con.sql(query.format(2)).fetchall() == [(1,)]
    con.unregister("u")
    assert con.sql(query.format(38)).fetchall() == [(1,)]
    con.sql("SET VARIABLE one = 1; SET VARIABLE two = 2")
    for name, value in (("one", 1), ("two", 2)):
        assert con.sql(f"SELECT a FROM t WHERE a = getvariable('{name}')").fetchall() == [(value,)]


def test_settings_of_a_statement_count(con: bamquery.Connection) -> None:
    query = "SELECT a FROM t WHERE a = (((({}))))"
    assert con.sql(query.format(1)).fetchall() == [(1,)]
    con.set("max_expression_depth", 3)
    for number in (1, 2):
        with pytest.raises(BamQueryError, match="max_expression_depth"):
            con.sql(query.format(number))


def test_time_goes_on(con: bamquery.Connection) -> None:
    query = "SELECT now() AS x FROM t WHERE a = {}"
    moments = [con.sql(query.format(n)).fetchall() for n in range(5)]
    assert len({str(moment) for moment in moments}) == 5


def test_so_many_plans_of_one_text_are_kept(con: bamquery.Connection, bound: list[str]) -> None:
    for _ in range(2):
        for number in range(2 * statement_cache._MOST_PLANS):
            assert len(con.sql(f"SELECT a FROM t LIMIT {number}").fetchall()) == number
    (known,) = con._session.statements._known.values()
    assert len(known) == statement_cache._MOST_PLANS
    assert len(bound) == 4 * statement_cache._MOST_PLANS


def test_the_plan_that_serves_most_is_asked_first(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not that of the text that was planned last, whose constants happen to be equal."""
    for first, second in ((1, 2), (3, 4), (7, 7)):
        con.sql(f"SELECT b FROM t WHERE a = {first} OR a = {second}").run().close()
    asked: list[object] = []
    query = KnownQuery.query

    def noted(known: KnownQuery, *rest: object) -> object:
        asked.append(known.constants.written)
        return query(known, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(KnownQuery, "query", noted)
    con.sql("SELECT b FROM t WHERE a = 5 OR a = 6").run().close()
    assert asked == [("1", "2")]


def test_plans_of_a_table_that_changed_make_room(con: bamquery.Connection, bound: list[str]) -> None:
    """However much they served: they serve nothing any more."""
    for number in range(4):  # as many plans as are kept
        for _ in range(3):
            con.sql(f"SELECT b FROM t WHERE a = {number} LIMIT {number}").run().close()
    con.sql("INSERT INTO t SELECT * FROM t LIMIT 1")
    for limit in (0, 1, 0, 2, 0, 3, 0):
        con.sql(f"SELECT b FROM t WHERE a = 5 LIMIT {limit}").run().close()
    assert [text for text in bound if text.endswith("a = 5 LIMIT 0")] == [
        "SELECT b FROM t WHERE a = 5 LIMIT 0"
    ]


def test_a_plan_that_was_never_run_serves_nothing_else(con: bamquery.Connection) -> None:
    for number in (1, 2, 1, 2):
        assert con.sql(f"SELECT a FROM t WHERE a = {number}").columns == ["a"]
    assert con.sql("SELECT a FROM t WHERE a = 3").fetchall() == [(3,)]


def test_a_plan_that_fails_is_made_again(con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    query = f"SELECT count(*) AS n FROM {JOINED} AND t.a < {{}}"
    with monkeypatch.context() as patched:
        patched.setattr("bamquery.plan.optimizer.RULES", (lambda plan: 1 / 0,))
        with pytest.raises(BamQueryError):
            con.sql(query.format(5)).fetchall()
    for number in (5, 6, 5):
        assert con.sql(query.format(number)).fetchall() == [(number,)]
    con.sql("INSERT INTO u VALUES (1000, 1, 'x')")
    con.sql("OPTIMIZE u")
    assert not con.vacuum().in_use


@pytest.mark.parametrize("levels", [5, 250])
def test_levels_of_queries(con: bamquery.Connection, bound: list[str], levels: int) -> None:
    """Of many the plan is made on a stack of its own, from the beginning once more."""
    chain = "".join(f", c{i} AS (SELECT a + 1 AS a FROM c{i - 1} GROUP BY a)" for i in range(1, levels))
    query = (
        f"WITH c0 AS (SELECT t.a FROM {JOINED} AND t.a < {{}}){chain} SELECT max(a) AS m FROM c{levels - 1}"
    )
    assert con.sql(query.format(9)).fetchall() == [(levels + 7,)]
    bound.clear()
    for number in (7, 9, 5):
        assert con.sql(query.format(number)).fetchall() == [(levels + number - 2,)]
    assert bound == []


def test_off(con: bamquery.Connection, bound: list[str]) -> None:
    con.sql("SET plan_cache = off")
    for _ in range(3):
        assert con.sql("SELECT a FROM t WHERE a = 1").fetchall() == [(1,)]
    assert len(bound) == 4


def test_threads(con: bamquery.Connection) -> None:
    query = (
        "SELECT count(*) AS n, sum(t.a + {0}) AS x FROM t, u, w WHERE t.a = u.a AND t.b = w.b AND t.a < {0}"
    )
    expected = [con.sql(query.format(n)).fetchall() for n in range(1, 12)]
    failures: list[BaseException] = []
    con._session.statements._known.clear()

    def ask(start: int) -> Callable[[], None]:
        def run() -> None:
            try:
                for step in range(22):
                    number = (start + step) % 11
                    assert con.sql(query.format(number + 1)).fetchall() == expected[number]
            except BaseException as failure:
                failures.append(failure)

        return run

    threads = [threading.Thread(target=ask(n)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_one_relation_is_run_by_several_threads(con: bamquery.Connection) -> None:
    relation = con.sql("SELECT sum(t.a) AS x FROM t, u, w WHERE t.a = u.a AND t.b = w.b AND t.a < 9")
    answers: list[object] = []
    threads = [
        threading.Thread(target=lambda: answers.append(relation.run().table().to_pylist())) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[{"x": 36}]] * 6
    assert con.sql(
        "SELECT sum(t.a) AS x FROM t, u, w WHERE t.a = u.a AND t.b = w.b AND t.a < 5"
    ).fetchall() == [(10,)]


def test_what_is_kept_holds_no_version(con: bamquery.Connection) -> None:
    query = f"SELECT count(*) AS n FROM {JOINED} AND u.s < 'name {{}}'"
    for number in (3, 2, 1):
        con.sql(query.format(number)).fetchall()
    con.sql("INSERT INTO u VALUES (1000, 1, 'x')")
    con.sql("OPTIMIZE u")
    assert not con.vacuum().in_use
