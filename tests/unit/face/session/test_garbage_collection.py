"""Python's collector of garbage stands still while a statement is planned, and planning leaves it nothing."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from sqlglot import exp

import bamquery
from bamquery.errors import BamQueryError, CancelledError
from bamquery.plan import optimizer
from bamquery.plan.expressions import Call
from bamquery.plan.nodes import Plan
from bamquery.sql_frontend import statement_binder
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.statement_context import garbage_collection
from bamquery.statement_context.garbage_collection import pause_collection

_MANY = 300
"""Conditions, of which each is several objects."""
_OBJECTS = 100
"""So many new ones, and the collector comes: many times in such a statement."""
_NOT_KEPT = " " * (1 << 16)
"""A text of that length is bound anew each time."""
_PLANNING = {"_parse_and_check", "_bind_statement", "_lower_plan"}
"""Functions that begin and end within planning."""

_OR = f"SELECT 1 FROM t WHERE {' OR '.join(f'x > {i} AND y < {i}' for i in range(_MANY))}"
_STATEMENTS = {
    "query": _OR,
    "union": " UNION ALL ".join(f"SELECT {i} AS a" for i in range(_MANY)),
    "case": f"SELECT CASE x {' '.join(f'WHEN {i} THEN y' for i in range(_MANY))} END FROM t",
    "explain": f"EXPLAIN {_OR}",
    "view": f"CREATE OR REPLACE VIEW v AS {_OR}",
    "insert": f"INSERT INTO t VALUES {', '.join(f'({i}, {i} + 1)' for i in range(_MANY))}",
    "subqueries": f"SELECT {'(' * 100}SELECT 1{')' * 100}",
    "several": f"SELECT 1; {_OR}; SELECT 2",
}
_REFUSED = {
    "a name that is not there": f"{_OR} OR z > 1",
    "several names that are not there": f"{_OR} OR z > 1 OR zz > 1",
    "types": f"{_OR} OR x > DATE '2020-01-01'",
    "syntax": f"{_OR} OR (",
    "syntax in a list": f"SELECT x IN ({', '.join(f'y + {i}' for i in range(_MANY))}, +) FROM t",
    "not supported": f"{_OR} OR x IN (SELECT 1 FROM t PIVOT (sum(x) FOR y IN (1)))",
    "a union of other columns": " UNION ALL ".join(["SELECT 1"] * 100 + ["SELECT 1, 2"]),
    "deep": f"SELECT {'(1 + ' * 400}z{')' * 400} FROM t",
    "the second of two": f"SELECT z FROM t; {_OR}",
}


@pytest.fixture
def con() -> Iterator[bamquery.Connection]:
    with bamquery.connect(device="cpu", threads=1) as connection:
        connection.sql("CREATE TABLE t AS SELECT range AS x, range AS y FROM range(3)")
        connection.sql(f"CREATE VIEW many AS {_OR}")
        yield connection


@pytest.fixture
def no_passes() -> Iterator[None]:
    """The collector is off: what counting references does not free is there."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def passes() -> Iterator[list[set[str]]]:
    """For each pass of the collector what planning functions it came in the middle of."""
    found: list[set[str]] = []

    def note(phase: str, information: dict[str, int]) -> None:
        del information
        if phase == "start":
            names, frame = set(), sys._getframe()
            above: FrameType | None = frame
            while above is not None:
                names.add(above.f_code.co_name)
                above = above.f_back
            found.append(names & _PLANNING)

    before = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(_OBJECTS)
    yield found
    gc.set_threshold(*before)
    gc.callbacks.remove(note)


def syntax_nodes() -> int:
    return sum(isinstance(found, exp.Expr) for found in gc.get_objects())


def plan_nodes() -> int:
    return sum(isinstance(found, Call) for found in gc.get_objects())


@pytest.mark.parametrize("name", _STATEMENTS)
def test_no_pass_while_planning(con: bamquery.Connection, passes: list[set[str]], name: str) -> None:
    with con.sql(_STATEMENTS[name]).run() as result:
        result.table()
    assert not any(passes)
    assert gc.isenabled()


@pytest.mark.parametrize("name", _REFUSED)
def test_no_pass_before_a_refusal(con: bamquery.Connection, passes: list[set[str]], name: str) -> None:
    with pytest.raises(BamQueryError):
        con.sql(_REFUSED[name])
    assert not any(passes)
    assert gc.isenabled()


@pytest.mark.usefixtures("no_passes")
@pytest.mark.parametrize("name", _STATEMENTS)
def test_the_tree_is_gone_without_a_pass(con: bamquery.Connection, name: str) -> None:
    before = syntax_nodes()
    relation = con.sql(_STATEMENTS[name])
    assert syntax_nodes() == before
    del relation


@pytest.mark.usefixtures("no_passes")
def test_the_tree_of_a_view_is_gone_without_a_pass(con: bamquery.Connection) -> None:
    before = syntax_nodes()
    relation = con.sql("SELECT * FROM many")
    assert syntax_nodes() == before
    relation.run().close()


@pytest.mark.usefixtures("no_passes")
@pytest.mark.parametrize("name", ["query", "union", "case"])
def test_the_plan_goes_with_its_relation(con: bamquery.Connection, name: str) -> None:
    con.sql("SELECT 1 FROM t WHERE x > 1").run().close()
    before = plan_nodes()
    con.sql(f"{_STATEMENTS[name]}{_NOT_KEPT}").run().close()
    assert plan_nodes() == before


@pytest.mark.usefixtures("no_passes")
@pytest.mark.parametrize("name", _REFUSED)
def test_an_error_keeps_nothing_of_the_statement(con: bamquery.Connection, name: str) -> None:
    before = syntax_nodes() + plan_nodes()
    with pytest.raises(BamQueryError) as caught:
        con.sql(_REFUSED[name])
    assert syntax_nodes() + plan_nodes() <= before + 2  # nodes that are taken apart
    error = weakref.ref(caught.value)
    del caught
    assert error() is None  # it does not know itself


@pytest.mark.parametrize("name", list(_REFUSED))
def test_what_the_caller_was_handling_keeps_its_variables(con: bamquery.Connection, name: str) -> None:
    """A debugger or a report of faults looks at them after the handler's own query was refused."""

    def fails() -> None:
        mine = "kept"
        raise KeyError(mine)

    kept = None
    try:
        fails()
    except KeyError as error:
        kept = error.__traceback__
        with pytest.raises(BamQueryError):
            con.sql(_REFUSED[name])
    assert kept is not None
    assert kept.tb_next is not None
    assert kept.tb_next.tb_frame.f_locals["mine"] == "kept"


@pytest.mark.usefixtures("no_passes")
def test_an_interrupted_statement_leaves_no_tree(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind, calls = ExpressionBinder.bind, 0

    def interrupted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == _MANY:
            con.interrupt()
        return bind(*arguments, **named)

    monkeypatch.setattr(ExpressionBinder, "bind", interrupted)
    before = syntax_nodes()
    with pytest.raises(CancelledError):
        con.sql(_OR)
    assert syntax_nodes() == before


@pytest.mark.parametrize("was_on", [True, False])
@pytest.mark.parametrize("error", [None, CancelledError("stop"), KeyboardInterrupt(), ZeroDivisionError()])
def test_the_collector_is_afterwards_what_it_was(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch, was_on: bool, error: BaseException | None
) -> None:
    bind, optimize, on = statement_binder._bind_statement, optimizer.optimize, []

    def spied(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            on.append(gc.isenabled())
            if error is not None:
                raise error
            return function(*arguments)

        return call

    monkeypatch.setattr(statement_binder, "_bind_statement", spied(bind))
    monkeypatch.setattr("bamquery.session.optimized_plans.optimize", spied(optimize))
    if not was_on:
        gc.disable()
    try:
        if error is None:
            assert con.sql("SELECT x FROM t WHERE y > 1").fetchall() == [(2,)]
            assert on == [False, False]
        else:
            with pytest.raises((BamQueryError, KeyboardInterrupt)):
                con.sql("SELECT x FROM t WHERE y > 1")
            assert on == [False]
        assert gc.isenabled() == was_on
    finally:
        gc.enable()


def test_planning_within_planning(con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    optimize, on = optimizer.optimize, []

    def plans_another(plan: Plan) -> Plan:
        monkeypatch.undo()
        assert con.sql("SELECT 7").fetchall() == [(7,)]
        on.append(gc.isenabled())
        return optimize(plan)

    monkeypatch.setattr("bamquery.session.optimized_plans.optimize", plans_another)
    assert con.sql("SELECT x FROM t WHERE y > 1").fetchall() == [(2,)]
    assert on == [False]
    assert gc.isenabled()


def test_threads_end_in_any_order() -> None:
    begun, ends = [threading.Event() for _ in range(3)], [threading.Event() for _ in range(3)]

    def plan(number: int) -> None:
        with pause_collection():
            begun[number].set()
            ends[number].wait(60)

    threads = [threading.Thread(target=plan, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    assert all(event.wait(60) for event in begun)
    for number in (1, 2, 0):
        assert not gc.isenabled()
        ends[number].set()
        threads[number].join(60)
    assert gc.isenabled()


def test_a_pause_that_is_forgotten_ends() -> None:
    pause = pause_collection()
    pause.__enter__()
    assert not gc.isenabled()
    del pause
    assert gc.isenabled()


def test_ctrl_c_at_the_beginning_of_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        gc.disable()
        raise KeyboardInterrupt

    module = SimpleNamespace(isenabled=gc.isenabled, enable=gc.enable, disable=interrupted)
    monkeypatch.setattr(garbage_collection, "gc", module)
    with pytest.raises(KeyboardInterrupt), pause_collection():
        pass
    assert gc.isenabled()


def test_a_child_does_not_inherit_the_pauses_of_threads() -> None:
    with pause_collection():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0
    assert gc.isenabled()
