"""What a text is bound to is made of a kept plan only for who looks at it: its runs do not."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bamquery
from bamquery.plan.late_plan import LatePlan
from bamquery.session import known_query
from bamquery.session.optimized_plans import optimized_plan

TEXT = "SELECT a, b + 2 AS c FROM t WHERE a > 90 AND b < 5"
OTHER = "SELECT a, b + 3 AS c FROM t WHERE a > 94 AND b < 6"
ROWS = [(95, 7), (96, 8), (98, 3), (99, 4)]


@pytest.fixture
def con(tmp_path: Path) -> Iterator[bamquery.Connection]:
    with bamquery.connect(tmp_path / "t.bq", device="cpu", threads=1) as con:
        con.sql("CREATE TABLE t AS SELECT range AS a, range % 7 AS b FROM range(100)")
        con.sql(TEXT).fetchall()
        yield con


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A word for each bound plan that is made of a kept one."""
    found: list[str] = []
    own = known_query._bound_plan

    def noted(*what: Any) -> Any:
        found.append("made")
        return own(*what)

    monkeypatch.setattr(known_query, "_bound_plan", noted)
    return found


def test_runs_do_not_look_at_it(con: bamquery.Connection, made: list[str]) -> None:
    relation = con.sql(OTHER)
    assert isinstance(relation._asked, LatePlan)
    assert relation.columns == ["a", "c"]
    assert relation.types == ["BIGINT", "BIGINT"]
    assert relation.fetchall() == ROWS
    assert relation.to_arrow().num_rows == len(ROWS)
    assert "t" in str(relation.explain())
    assert con.sql(TEXT + " ").fetchone() == (91, 2)
    assert not made


def test_who_makes_more_of_it_has_it_with_the_constants_of_now(
    con: bamquery.Connection, made: list[str]
) -> None:
    relation = con.sql(OTHER)
    assert relation.filter("c > 4").fetchall() == ROWS[:2]
    assert relation.limit(1).fetchall() == ROWS[:1]
    assert relation.fetchall() == ROWS
    assert con.sql("SELECT sum(a) FROM relation").fetchall() == [(sum(a for a, _ in ROWS),)]
    assert made == ["made"]


def test_it_is_what_it_would_be_anew(con: bamquery.Connection) -> None:
    kept = con.sql(OTHER)
    con.set("plan_cache", False)
    anew = con.sql(OTHER)
    assert not isinstance(anew._asked, LatePlan)
    assert kept._asked.fields == kept._plan.fields == anew._plan.fields
    assert kept._plan.fields != con.sql("SELECT a FROM t")._plan.fields
    assert kept._plan is kept._plan
    assert optimized_plan(kept._plan) is optimized_plan(kept._asked)
    assert kept.explain() == anew.explain()


def test_names_of_other_constants(con: bamquery.Connection) -> None:
    """A column's name is its expression's text."""
    con.sql("SELECT b + 2 FROM t WHERE a > 98").fetchall()
    relation = con.sql("SELECT b + 40 FROM t WHERE a > 97")
    assert relation.columns == ["(b + 40)"]
    assert relation.to_arrow().schema.names == ["(b + 40)"]


def test_many_threads_have_one(con: bamquery.Connection) -> None:
    made: list[str] = []
    found: list[Any] = []
    together, bound = threading.Barrier(8), con.sql(TEXT)._plan

    def make() -> Any:
        made.append("made")
        time.sleep(0.05)  # in which others come
        return bound

    late = LatePlan(bound.fields, bound, make)

    def look() -> None:
        together.wait()
        found.append(late.plan)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert made == ["made"]
    assert len({id(plan) for plan in found}) == 1


@pytest.mark.parametrize("looks", [False, True])
def test_tables_are_let_go_of_with_it(con: bamquery.Connection, looks: bool) -> None:
    relation = con.sql(OTHER)
    if looks:
        assert relation._plan
    (scan,) = [node for node in _nodes(optimized_plan(relation._asked)) if hasattr(node, "source")]
    source = weakref.ref(scan.source)
    assert relation.fetchall() == ROWS
    assert source() is not None
    del relation, scan
    assert source() is None


def _nodes(plan: Any) -> Iterator[Any]:
    from bamquery.plan.rewriting import nodes_of

    return iter(list(nodes_of(plan)))
