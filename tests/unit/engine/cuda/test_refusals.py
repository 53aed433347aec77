"""What the cuda device refuses, and why; nothing here needs libcudf."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from bamquery.engine.cpu import refusals as on_cpu
from bamquery.engine.cpu.casts.cast import family, is_castable
from bamquery.engine.cuda import refusals
from bamquery.plan.expressions import AggregateCall, Call, Cast, ColumnRef, SortKey
from bamquery.plan.functions import AGGREGATE_FUNCTIONS
from tests.strategies import ALL_TYPES, PLAIN_TYPES

TEXT = pa.large_string()


def cast(source: pa.DataType, target: pa.DataType) -> Cast:
    return Cast(ColumnRef(0, "a", source), target)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_columns_of_all_stored_types_are_held(kind: pa.DataType) -> None:
    assert refusals.type_refusals(kind) == []


def test_other_types_are_refused_in_the_devices_name() -> None:
    (reason,) = refusals.type_refusals(pa.list_(pa.int64()))
    assert reason.startswith("the cuda device has no columns of type")


def test_functions_that_do_not_exist_are_refused() -> None:
    call = Call("frobnicate", (ColumnRef(0, "a", TEXT),), TEXT)
    assert refusals.expression_refusals(call) == ["the cuda device has no function frobnicate"]
    aggregate = AggregateCall("median", (ColumnRef(0, "a", pa.float64()),), pa.float64())
    assert refusals.aggregate_refusals(aggregate) == ["the cuda device has no aggregate median"]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (TEXT, pa.int32()),
        (TEXT, pa.float64()),
        (TEXT, pa.decimal128(5, 2)),
        (TEXT, pa.date32()),
        (TEXT, pa.time64("us")),
        (TEXT, pa.timestamp("us")),
        (TEXT, pa.large_binary()),
        (pa.dictionary(pa.int32(), TEXT), pa.int32()),
        (pa.float64(), TEXT),
        (pa.large_binary(), TEXT),
        (pa.decimal128(1, 1), TEXT),
    ],
    ids=str,
)
def test_casts_between_texts_and_numbers_are_refused_with_the_way_out(
    source: pa.DataType, target: pa.DataType
) -> None:
    assert on_cpu.expression_refusals(cast(source, target)) == []
    (reason,) = refusals.expression_refusals(cast(source, target))
    assert reason.startswith("the cuda device cannot cast")
    assert reason.endswith("SET device = 'cpu' for this query")


def test_refusals_are_found_below_and_in_aggregates() -> None:
    inner = cast(TEXT, pa.int64())
    outer = Call("add", (inner, ColumnRef(0, "b", pa.int64())), pa.int64())
    reasons = refusals.expression_refusals(outer)
    assert len(reasons) == 1
    total = AggregateCall("sum", (outer,), pa.decimal128(38, 0))
    assert refusals.aggregate_refusals(total) == reasons
    filtered = AggregateCall("count_star", (), pa.int64(), filter=Call("greater", (inner, outer), pa.bool_()))
    assert refusals.aggregate_refusals(filtered) == reasons


def test_whatever_is_not_refused_is_implemented(device: object) -> None:
    conversions = sys.modules["bamquery.engine.cuda.casts.cast"].CONVERSIONS
    for source in PLAIN_TYPES:
        for target in PLAIN_TYPES:
            if source == target or not is_castable(source, target):
                continue
            if not refusals.expression_refusals(cast(source, target)):
                assert (family(source), family(target)) in conversions, (source, target)


def test_every_function_and_aggregate_of_the_cpu_is_there(device: object) -> None:
    from bamquery.engine.cpu.aggregates.registry import is_known
    from bamquery.engine.cpu.conditions import FORMS
    from bamquery.engine.cpu.functions import FUNCTIONS

    assert set(sys.modules["bamquery.engine.cuda.functions"].FUNCTIONS) == set(FUNCTIONS)
    assert set(sys.modules["bamquery.engine.cuda.conditions"].FORMS) == set(FORMS)
    there = set(sys.modules["bamquery.engine.cuda.aggregates.registry"].ACCUMULATORS)
    assert there == {name for name in AGGREGATE_FUNCTIONS if is_known(name)} - refusals.REFUSED_AGGREGATES


def test_aggregates_that_libcudf_lacks_are_named() -> None:
    doubles = ColumnRef(0, "x", pa.float64())
    (reason,) = refusals.aggregate_refusals(AggregateCall("mode", (doubles,), pa.float64()))
    assert reason == "the cuda device has no aggregate mode; SET device = 'cpu' for this query"
    ordered = AggregateCall("first", (doubles,), pa.float64(), order=(SortKey(doubles),))
    (reason,) = refusals.aggregate_refusals(ordered)
    assert reason.startswith("the cuda device has no ORDER BY within first")
