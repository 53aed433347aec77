"""Which conditions of a join are keys, and which side is held."""

from __future__ import annotations

import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.lowering import lower
from bamquery.engine.operators.join.lowering import join_condition
from bamquery.engine.settings import Settings
from bamquery.plan import nodes
from bamquery.plan.format import format_expression
from bamquery.plan.rewriting import children
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
    ],
)
def test_marks_compare_constants_too(row: str, selected: str, compared: list[str]) -> None:
    condition = join_condition(_join(plan_of(f"SELECT {row} IN (SELECT {selected} FROM types) FROM trips")))
    assert not condition.probe_keys
    assert [f"{format_expression(a)} = {format_expression(b)}" for a, b in condition.compared] == compared


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
