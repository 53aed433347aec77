"""What a scan makes of its predicates."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bamquery.engine.operators.scan.filter_order import filter_steps
from bamquery.engine.sources.scan_predicates import conjunction, implied_conjuncts, rebase, split_conjuncts
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from bamquery.storage.statistics.predicate import RangePredicate

WORD = pa.dictionary(pa.int32(), pa.large_string())
SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.float64()),
        ("text", pa.large_string()),
        ("word", WORD),
        ("flag", pa.bool_()),
        ("small", pa.int8()),
    ]
)


def col(name: str) -> ColumnRef:
    index = SCHEMA.get_field_index(name)
    return ColumnRef(index, name, SCHEMA.field(index).type)


def lit(value: object, kind: pa.DataType) -> Literal:
    return Literal(pa.scalar(value, kind))


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, pa.bool_())


def ranges(expression: Expression) -> list[RangePredicate]:
    return [found for conjunct in split_conjuncts([expression], SCHEMA) for found in conjunct.ranges]


@pytest.mark.parametrize(
    ("function", "operator", "mirrored"),
    [
        ("equal", "=", "="),
        ("not_equal", "!=", "!="),
        ("less", "<", ">"),
        ("less_equal", "<=", ">="),
        ("greater", ">", "<"),
        ("greater_equal", ">=", "<="),
    ],
)
def test_comparisons_both_ways_round(function: str, operator: str, mirrored: str) -> None:
    seven = lit(7, pa.int64())
    assert ranges(call(function, col("a"), seven)) == [RangePredicate("a", operator, (pa.scalar(7),))]
    assert ranges(call(function, seven, col("a"))) == [RangePredicate("a", mirrored, (pa.scalar(7),))]


def test_null_tests_and_booleans() -> None:
    assert ranges(call("is_null", col("text"))) == [RangePredicate("text", "is_null")]
    assert ranges(call("is_not_null", col("b"))) == [RangePredicate("b", "is_not_null")]
    assert ranges(col("flag")) == [RangePredicate("flag", "=", (pa.scalar(True),))]


def test_a_null_in_a_list_matches_nothing() -> None:
    kind = pa.int64()
    found = ranges(call("in", col("a"), lit(1, kind), lit(None, kind), lit(5, kind)))
    assert found == [RangePredicate("a", "in", (pa.scalar(1), pa.scalar(5)))]


def test_a_dictionary_is_compared_as_its_values() -> None:
    red = lit("red", pa.large_string())
    expected = [RangePredicate("word", "=", (pa.scalar("red", pa.large_string()),))]
    assert ranges(call("equal", Cast(col("word"), pa.large_string()), red)) == expected
    assert ranges(call("equal", col("word"), red)) == expected


@pytest.mark.parametrize(
    "expression",
    [
        call("less", col("a"), Cast(col("b"), pa.int64())),
        call("less", Cast(col("a"), pa.float64()), lit(1.5, pa.float64())),
        call("less", Call("add", (col("a"), lit(1, pa.int64())), pa.int64()), lit(3, pa.int64())),
        call("or", call("is_null", col("a")), call("equal", col("a"), lit(1, pa.int64()))),
        call("like", col("text"), lit("a%", pa.large_string())),
        call("in", col("a"), col("a")),
        call("equal", col("small"), lit(300, pa.int64())),
    ],
)
def test_what_zone_maps_cannot_tell(expression: Expression) -> None:
    assert ranges(expression) == []


def test_nested_conjunctions_are_taken_apart() -> None:
    one, two, three = (call("equal", col("a"), lit(i, pa.int64())) for i in range(3))
    conjuncts = split_conjuncts([call("and", one, call("and", two, three))], SCHEMA)
    assert [conjunct.expression for conjunct in conjuncts] == [one, two, three]
    assert conjunction([one]) is one
    assert conjunction([one, two]) == call("and", one, two)


@pytest.mark.parametrize(
    ("expression", "fails"),
    [
        (Cast(col("text"), pa.int64()), True),
        (Cast(col("text"), pa.int64(), try_=True), False),
        (Cast(col("a"), pa.int8()), True),
        (Cast(col("small"), pa.int64()), False),
        (Cast(col("small"), pa.uint64()), True),
        (Cast(col("a"), pa.float64()), False),
        (Cast(col("b"), pa.float32()), True),
        (Cast(col("a"), pa.large_string()), False),
        (Cast(col("word"), pa.large_string()), False),
        (Cast(col("word"), pa.int64()), True),
        (Call("add", (col("a"), col("a")), pa.int64()), True),
        (Call("add", (col("b"), col("b")), pa.float64()), False),
        (Call("divide", (col("b"), col("b")), pa.float64()), False),
        (Call("sqrt", (col("b"),), pa.float64()), True),
    ],
)
def test_which_conditions_can_fail(expression: Expression, fails: bool) -> None:
    (conjunct,) = split_conjuncts([call("is_null", expression)], SCHEMA)
    assert conjunct.can_fail is fails


def test_steps_group_by_columns_and_leave_what_can_fail_to_the_end() -> None:
    low = call("greater", col("a"), lit(1, pa.int64()))
    risky = call("greater", Cast(col("text"), pa.int64()), lit(1, pa.int64()))
    pair = call("less", col("b"), Cast(col("a"), pa.float64()))
    high = call("less", col("a"), lit(9, pa.int64()))
    found = filter_steps(split_conjuncts([low, risky, pair, high], SCHEMA))
    assert [step.columns for step in found] == [(0,), (0, 1), (2,)]
    assert [step.can_fail for step in found] == [False, False, True]
    assert found[0].predicate == call("and", rebase(low, [0]), rebase(high, [0]))
    assert found[1].predicate == call(
        "less", ColumnRef(1, "b", pa.float64()), Cast(ColumnRef(0, "a", pa.int64()), pa.float64())
    )
    assert [step.number for step in found] == [0, 1, 2]


def test_nulls_that_are_wanted_too() -> None:
    seven = lit(7, pa.int64())
    is_null = call("is_null", col("a"))
    assert ranges(call("or", call("less", col("a"), seven), is_null)) == [
        RangePredicate("a", "<", (pa.scalar(7),), or_null=True)
    ]
    assert ranges(call("or", call("less", col("a"), seven), call("is_null", col("b")))) == []
    assert ranges(call("or", call("less", col("a"), seven), call("greater", col("a"), seven))) == []


def test_ors_of_several_columns_say_something_of_each_that_all_parts_name() -> None:
    one, two = lit(1, pa.int64()), lit(2, pa.int64())
    x, y = lit("x", pa.large_string()), lit("y", pa.large_string())
    is_one, is_x = call("equal", col("a"), one), call("equal", col("text"), x)
    is_two, is_y = call("equal", col("a"), two), call("equal", col("text"), y)
    either = call("or", call("and", is_one, is_x), call("and", is_two, is_y, col("flag")))
    found = implied_conjuncts(split_conjuncts([either, is_one], SCHEMA), SCHEMA)
    assert [conjunct.expression for conjunct in found] == [
        call("or", is_one, is_two),
        call("or", is_x, is_y),
    ]
    alike = call("or", call("and", is_one, is_x), call("and", is_one, is_y))
    assert implied_conjuncts(split_conjuncts([alike], SCHEMA), SCHEMA)[0].expression == is_one


def test_ors_that_can_fail_or_draw_at_random_imply_nothing() -> None:
    one, x = lit(1, pa.int64()), lit("x", pa.large_string())
    is_x = call("equal", col("text"), x)
    sums = call("equal", Call("add", (col("a"), one), pa.int64()), one)
    draws = call("less", Call("random", (), pa.float64()), col("b"))
    for condition in (sums, draws):
        either = call("or", call("and", condition, is_x), call("and", is_x, condition, col("flag")))
        assert implied_conjuncts(split_conjuncts([either], SCHEMA), SCHEMA) == []
