"""`interrupt` and `statement_timeout` before a query runs, and in statements that are no queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlglot.tokenizer_core

import bamquery
from bamquery.engine import lowering
from bamquery.errors import CancelledError, StatementTimeoutError
from bamquery.plan import interning
from bamquery.plan.rules import order_joins, prune_columns, push_down_predicates
from bamquery.session import session
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.parser import positioned_parser as placing_parser
from bamquery.storage.tables import vacuum
from bamquery.storage.tables.transaction import Transaction

_LISTS = "SELECT " + ", ".join(f"x IN ({', '.join(map(str, range(i, i + 50)))})" for i in range(20))
_WIDE = f"{_LISTS} FROM range(3) t(x)"
_MANY = "SELECT 1 FROM " + ", ".join(f"(SELECT x FROM range(3) r(x) WHERE x > {i}) t{i}" for i in range(40))
_STEPS_AFTER = 5
"""Steps of a phase that may follow an interrupt."""


class _Steps:
    """Counts calls of a function, interrupts in one of them, and counts those that follow."""

    def __init__(self, interrupt: Callable[[], None], at: int) -> None:
        self._interrupt = interrupt
        self._at = at
        self.calls = 0

    def hooked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self._at:
                self._interrupt()
            return function(*arguments, **named)

        return step

    @property
    def after(self) -> int:
        return self.calls - self._at


_PHASES: list[Any] = [
    pytest.param(sqlglot.tokenizer_core.TokenizerCore, "_add", _WIDE, id="tokens"),
    pytest.param(placing_parser.DuckDBParser, "_parse_unary", _WIDE, id="parser"),
    pytest.param(ExpressionBinder, "bind", _WIDE, id="binder"),
    pytest.param(interning.Interning, "_intern_node", _MANY, id="interning"),
    pytest.param(order_joins._Ordering, "_reorder", _MANY, id="order_joins"),
    pytest.param(prune_columns._Pruning, "_prune", _MANY, id="prune_columns"),
    pytest.param(push_down_predicates._PredicatePushdown, "rewrite", _MANY, id="push_down_predicates"),
    pytest.param(lowering, "_operator", _MANY, id="lowering"),
]


@pytest.mark.parametrize(("owner", "name", "sql"), _PHASES)
def test_an_interrupt_is_seen_within_a_few_steps(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, sql: str
) -> None:
    steps = _Steps(con.interrupt, at=20)
    monkeypatch.setattr(owner, name, steps.hooked(getattr(owner, name)))
    with pytest.raises(CancelledError):
        con.sql(sql).fetchall()
    assert 0 <= steps.after <= _STEPS_AFTER
    monkeypatch.undo()
    assert con.sql("SELECT 1").fetchall() == [(1,)]  # what comes later is not stopped


@pytest.mark.parametrize("sql", [_WIDE, f"CREATE VIEW v AS {_WIDE}", f"EXPLAIN {_MANY}"])
def test_the_timeout_reaches_planning(con: bamquery.Connection, sql: str) -> None:
    con.set(statement_timeout=1e-6)
    with pytest.raises(StatementTimeoutError, match="statement_timeout"):
        con.sql(sql)


def test_a_query_of_with_that_is_interrupted_is_no_wrong_query(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = _Steps(con.interrupt, at=3)
    monkeypatch.setattr(ExpressionBinder, "bind", steps.hooked(ExpressionBinder.bind))
    with pytest.raises(CancelledError):
        con.sql("WITH never_named AS (SELECT 1 + 2 + 3 + 4) SELECT 5").fetchall()


def test_a_deep_statement_is_interrupted(con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = _Steps(con.interrupt, at=600)
    monkeypatch.setattr(ExpressionBinder, "bind", steps.hooked(ExpressionBinder.bind))
    with pytest.raises(CancelledError):
        con.sql("SELECT " + "(1+" * 400 + "1" + ")" * 400)


def test_optimize_is_interrupted(con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    con.sql("CREATE TABLE t AS SELECT range AS i FROM range(1000)")
    con.sql("INSERT INTO t SELECT range FROM range(1000)")
    write, table = Transaction.write, con._session.database.table("t")
    version = table.snapshot().version

    def slow(self: Transaction, schema: Any, source: Any, cancelled: Callable[[], bool]) -> Any:
        con.interrupt()
        while not cancelled():
            pass
        return write(self, schema, source, cancelled)

    monkeypatch.setattr(Transaction, "write", slow)
    for optimize in (lambda: con.sql("OPTIMIZE t"), lambda: con.optimize("t")):
        with pytest.raises(CancelledError):
            optimize()
    monkeypatch.undo()
    assert table.snapshot().version == version
    con.sql("OPTIMIZE t")
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(2000,)]


def test_vacuum_is_interrupted(con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(12):
        con.sql(f"CREATE OR REPLACE TABLE t AS SELECT {i} AS i")
    steps = _Steps(con.interrupt, at=3)
    monkeypatch.setattr(vacuum, "_remove", steps.hooked(vacuum._remove))
    with pytest.raises(CancelledError):
        con.sql("VACUUM")
    assert steps.after <= 1
    monkeypatch.undo()
    con.sql("VACUUM")
    assert con.sql("SELECT i FROM t").fetchall() == [(11,)]


def test_an_interrupt_before_a_result_is_known_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    with bamquery.connect() as connection:
        relation = connection.sql("SELECT max(x) FROM range(10) t(x)")
        steps = _Steps(connection.interrupt, at=1)
        monkeypatch.setattr(session, "watch", steps.hooked(session.watch))
        with pytest.raises(CancelledError):
            relation.to_arrow()
        assert relation.to_arrow().num_rows == 1
