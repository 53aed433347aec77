"""Which conditions of a join are keys, and which side is held."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.lowering import lower
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.join import lowering
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.lowering import join_condition, lower_join
from bamquery.engine.settings import Settings
from bamquery.plan import nodes
from bamquery.plan.expressions import Call, ColumnRef, Literal
from bamquery.plan.format import format_expression
from bamquery.plan.rewriting import children
from bamquery.plan.working_table import WorkingTable
from tests.conformance.harness import Rows
from tests.plans import plan_of


def _join(plan: nodes.Plan) -> nodes.Join:
    while not isinstance(plan, nodes.Join):
        plan = children(plan)[0]
    return plan


@pytest.mark.parametrize(
    ("sql", "keys", "residual"),
    [
        ("SELECT 1 FROM trips JOIN types ON id = c_i64", ["id = c_i64"], ""),
        ("SELECT 1 FROM trips JOIN types ON c_i64 = id AND c_i8 > vendor", ["id = c_i64"], "(c_i8 > vendor)"),
        ("SELECT 1 FROM trips JOIN types ON id IS NOT DISTINCT FROM c_i64", ["id == c_i64"], ""),
        ("SELECT 1 FROM trips JOIN types ON id = vendor", [], "(id = CAST(vendor AS BIGINT))"),
        ("SELECT 1 FROM trips JOIN types ON id + c_i64 = 3", [], "((id + c_i64) = 3)"),
        ("SELECT id IN (SELECT c_i64 FROM types) FROM trips", ["id = c_i64"], ""),
        (
            "SELECT vendor IN (SELECT c_i8 FROM types WHERE c_i64 = id) FROM trips",
            ["id == outer0"],
            "(vendor = c_i8)",
        ),
        ("SELECT EXISTS (SELECT 1 FROM types WHERE c_i64 = id) FROM trips", ["id == c_i64"], ""),
        (
            "SELECT EXISTS (SELECT 1 FROM types WHERE c_i64 = id AND c_i8 > vendor) FROM trips",
            ["id == c_i64"],
            "coalesce((c_i8 > vendor), FALSE)",
        ),
        ("SELECT vendor > ANY (SELECT c_i8 FROM types) FROM trips", [], "(vendor > c_i8)"),
    ],
)
def test_keys(sql: str, keys: list[str], residual: str) -> None:
    condition = join_condition(_join(plan_of(sql)))
    sides = zip(condition.probe_keys, condition.build_keys, condition.nulls_equal, strict=True)
    given = [
        f"{format_expression(left)} {'==' if equal else '='} {format_expression(right)}"
        for left, right, equal in sides
    ]
    assert given == keys
    assert (format_expression(condition.residual) if condition.residual is not None else "") == residual


@pytest.mark.parametrize(
    ("row", "selected", "compared"),
    [
        ("3", "c_i64", ["3 = c_i64"]),
        ("(vendor + 1, 3)", "c_i8, c_i64", ["(vendor + 1) = c_i8", "3 = c_i64"]),
        ("(vendor, id)", "c_i8, 3::BIGINT", ["vendor = c_i8", "id = CAST(3 AS BIGINT)"]),
        ("(vendor, INTERVAL (id) DAY)", "c_i8, INTERVAL (c_i64) DAY", []),
    ],
)
def test_marks_compare_constants_too(row: str, selected: str, compared: list[str]) -> None:
    condition = join_condition(_join(plan_of(f"SELECT {row} IN (SELECT {selected} FROM types) FROM trips")))
    assert not condition.probe_keys
    assert [f"{format_expression(a)} = {format_expression(b)}" for a, b in condition.compared] == compared


@pytest.mark.parametrize(
    "comparison", ["3 > ANY", "vendor <> ALL", "(vendor, id) < ANY", "3 IN", "(vendor > 1, paid) IN"]
)
def test_marks_compare_only_what_is_equal(comparison: str) -> None:
    selected = {"(vendor, id)": "c_i8, c_i64", "(vendor > 1, paid)": "c_bool, c_bool"}
    row = comparison.rsplit(" ", 1)[0].removesuffix(" <").removesuffix(" IN")
    sql = f"SELECT {comparison} (SELECT {selected.get(row, 'c_i8')} FROM types) FROM trips"
    condition = join_condition(_join(plan_of(sql)))
    assert len(condition.compared) == {"3 IN": 1, "(vendor > 1, paid) IN": 2}.get(comparison, 0)


@pytest.mark.parametrize("turned", [False, True])
def test_marks_compare_columns_of_the_left_with_constants(turned: bool) -> None:
    """A constant may be on either side of the sign, and stands for the other row's value."""
    join = _join(plan_of("SELECT (vendor, 3) IN (SELECT c_i8, c_i64 FROM types) FROM trips"))
    column, three = ColumnRef(0, "id", pa.int64()), Literal(pa.scalar(3, pa.int64()))
    same = Call("equal", (three, column) if turned else (column, three), pa.bool_())
    both = Call("and", (same, join.condition), pa.bool_())
    compared = join_condition(nodes.Join(join.left, join.right, "mark", both)).compared
    assert compared[0] == (column, three)
    assert len(compared) == 3


def test_marks_compare_nothing_of_both_sides_with_a_constant() -> None:
    join = _join(plan_of("SELECT 3 IN (SELECT c_i64 FROM types) FROM trips"))
    columns = (ColumnRef(place, "c", pa.int64()) for place in (0, len(join.left.fields)))
    total = Call("add", tuple(columns), pa.int64())
    same = Call("equal", (total, Literal(pa.scalar(3, pa.int64()))), pa.bool_())
    condition = join_condition(nodes.Join(join.left, join.right, "mark", same))
    assert (condition.compared, condition.residual) == ((), same)


def test_columns_of_the_right_alone_are_no_key() -> None:
    join = _join(plan_of("SELECT 1 FROM trips FULL JOIN types ON id = c_i64"))
    columns = (ColumnRef(len(join.left.fields) + place, "c", pa.int64()) for place in (0, 1))
    same = Call("equal", tuple(columns), pa.bool_())
    condition = join_condition(nodes.Join(join.left, join.right, "full", same))
    assert not condition.probe_keys
    assert condition.residual == same


def test_a_condition_that_is_a_column_compares_nothing() -> None:
    """Of a row of flags, each of which is compared with TRUE."""
    plan = plan_of("SELECT (vendor, 3) IN (SELECT c_i8, c_i64 FROM types) FROM trips")
    join = _join(plan)
    flag = ColumnRef(len(join.left.fields) - 1, "paid", pa.bool_())
    for condition in (
        flag,
        Call("and", (flag, join.condition), pa.bool_()),
        Call("not", (flag,), pa.bool_()),
    ):
        assert join_condition(nodes.Join(join.left, join.right, "mark", condition)).compared == ()


@pytest.mark.parametrize(
    ("kind", "swapped"),
    [("inner", "inner"), ("left", "right"), ("right", "left"), ("full", "full"), ("semi", "semi")],
)
def test_the_smaller_side_is_held(kind: nodes.JoinKind, swapped: str) -> None:
    few = plan_of("VALUES (1, 2)")
    many = plan_of("VALUES (1, 2), (3, 4), (5, 6)")
    for left, right, expected in ((many, few, kind), (few, many, swapped), (many, many, kind)):
        operator = lower(nodes.Join(left, right, kind), CpuDevice(), Settings())
        while operator.profile.name == "Project":
            (operator,) = operator.children
        assert operator.profile.details["kind"] == expected


STEP = nodes.Scan(WorkingTable("t", pa.schema([("n", pa.int64())])), (0,))
"""Rows that are others in each step of a recursive query."""


def _fixed(rows: int) -> nodes.Plan:
    return nodes.Values(pa.record_batch([pa.array(range(rows), pa.int64())], ["n"]))


@pytest.mark.parametrize("dynamic_filters", [True, False])
@pytest.mark.parametrize(
    ("plan", "kept"),
    [
        (nodes.Join(STEP, _fixed(5), "inner"), "right"),
        (nodes.Join(STEP, _fixed(5), "left"), "right"),
        (nodes.Join(STEP, _fixed(5), "semi"), "right"),
        (nodes.Join(STEP, _fixed(5), "mark"), "right"),
        (nodes.Join(_fixed(5), STEP, "inner"), "left"),
        (nodes.Join(_fixed(5), STEP, "full"), "left"),
        (nodes.Join(_fixed(5), STEP, "anti"), None),
        (nodes.Join(nodes.Limit(STEP, 2), _fixed(5), "inner"), "right"),
        (nodes.Join(_fixed(5), nodes.Limit(STEP, 2), "right"), "left"),
        (nodes.Join(STEP, _fixed(6), "inner"), None),
        (nodes.Join(STEP, nodes.Sample(_fixed(5), 3), "inner"), None),
        (nodes.Join(STEP, nodes.Limit(nodes.Sample(_fixed(5), 3), 2), "inner"), None),
        (nodes.Join(STEP, nodes.Sample(_fixed(5), 3, seed=1), "inner"), "right"),
        (nodes.Join(STEP, nodes.Limit(STEP, 2), "inner"), None),
        (nodes.Join(_fixed(5), _fixed(3), "inner"), None),
    ],
)
def test_sides_that_are_kept_for_each_step(
    monkeypatch: pytest.MonkeyPatch, plan: nodes.Join, kept: str | None, dynamic_filters: bool
) -> None:
    """Those that are the same in all of them, of few rows, beside others that are not."""
    monkeypatch.setattr(lowering, "_MOST_KEPT", 5)
    calls: list[str] = []
    for method in ("keep_build", "filter_probe", "filter_build"):
        monkeypatch.setattr(Join, method, lambda join, method=method: calls.append(method))
    sides: dict[Operator[Any], str] = {}

    def lower_side(side: nodes.Plan) -> Operator[Any]:
        sides[operator := Rows(pa.table({"n": [1]}))] = "left" if side is plan.left else "right"
        return operator

    operator = lower_join(plan, lower_side, dynamic_filters=dynamic_filters)
    while not isinstance(operator, Join):
        (operator,) = operator.children
    assert ("keep_build" in calls) == (kept is not None)
    if kept is not None:
        assert sides[operator.children[1]] == kept
        assert ("filter_probe" in calls) == dynamic_filters
    assert dynamic_filters or not {*calls} & {"filter_probe", "filter_build"}


@pytest.mark.parametrize(
    ("left", "right", "kind", "calls"),
    [
        (3, 6, "semi", ["filter_build", "filter_probe"]),  # which does not take it
        (4, 6, "semi", ["filter_probe"]),
        (6, 6, "inner", ["filter_probe"]),
        (2, 6, "inner", ["filter_probe"]),  # the sides change places
        (5, 12, "anti", ["filter_probe"]),
        (4, 12, "anti", ["filter_build", "filter_probe"]),
    ],
)
def test_sides_that_are_read_first(
    monkeypatch: pytest.MonkeyPatch, left: int, right: int, kind: nodes.JoinKind, calls: list[str]
) -> None:
    monkeypatch.setattr(lowering, "MOST_ROWS", 4)
    called: list[str] = []
    for method in ("filter_probe", "filter_build"):
        monkeypatch.setattr(Join, method, lambda join, method=method: called.append(method))
    plan = nodes.Join(_fixed(left), _fixed(right), kind)
    lower_join(plan, lambda side: Rows(pa.table({"n": [1]})), dynamic_filters=True)
    assert called == calls
    called.clear()
    lower_join(plan, lambda side: Rows(pa.table({"n": [1]})), dynamic_filters=False)
    assert called == []
    monkeypatch.setattr(Join, "filter_build", lambda join: called.append("filter_build") or True)
    lower_join(plan, lambda side: Rows(pa.table({"n": [1]})), dynamic_filters=True)
    assert called == calls[:1]
