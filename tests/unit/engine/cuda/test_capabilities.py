"""What the cuda device refuses, and why; nothing here needs libcudf."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from bamquery.data_types.type_groups import INTERVAL
from bamquery.engine.aggregate_families import AGGREGATES
from bamquery.engine.cpu.device import CPU
from bamquery.engine.cuda.capabilities import CUDA
from bamquery.engine.formulas.type_families import family, is_castable
from bamquery.function_catalog.plan_functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS
from bamquery.plan.expressions import AggregateCall, Call, Cast, ColumnRef, Literal, SortKey
from tests.strategies import ALL_TYPES, PLAIN_TYPES

TEXT = pa.large_string()


def cast(source: pa.DataType, target: pa.DataType) -> Cast:
    return Cast(ColumnRef(0, "a", source), target)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_columns_of_all_stored_types_are_held(kind: pa.DataType) -> None:
    assert CUDA.type_refusals(kind) == []


def test_other_types_are_refused_in_the_devices_name() -> None:
    (reason,) = CUDA.type_refusals(pa.list_(pa.int64()))
    assert reason.startswith("the cuda device has no columns of type")


def test_functions_that_do_not_exist_are_refused() -> None:
    call = Call("frobnicate", (ColumnRef(0, "a", TEXT),), TEXT)
    assert CUDA.expression_refusals(call) == ["the cuda device has no function frobnicate"]
    aggregate = AggregateCall("median", (ColumnRef(0, "a", pa.float64()),), pa.float64())
    assert CUDA.aggregate_refusals(aggregate) == ["the cuda device has no aggregate median"]


def test_functions_that_libcudf_has_not_are_refused_with_the_way_out() -> None:
    text = ColumnRef(0, "a", TEXT)
    (reason,) = CUDA.expression_refusals(Call("md5", (text,), TEXT))
    assert reason == (
        "the cuda device has no md5() for columns: libcudf has no such function; "
        "SET device = 'cpu' for this query"
    )
    (reason,) = CUDA.expression_refusals(Call("like", (text, text), pa.bool_()))
    assert "its arguments after the first must be constants there" in reason


def test_intervals_are_constants() -> None:
    moment = ColumnRef(0, "a", pa.timestamp("us"))
    span = Literal(pa.scalar((1, 2, 3000), INTERVAL))
    assert CUDA.expression_refusals(Call("add_interval", (moment, span), moment.type)) == []
    reasons = CUDA.expression_refusals(Call("timestamp_difference", (moment, moment), INTERVAL))
    assert any("libcudf has no intervals of months" in reason for reason in reasons)
    (reason,) = CUDA.type_refusals(INTERVAL)
    assert reason.startswith("the cuda device has no columns of type INTERVAL")


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
    assert CPU.expression_refusals(cast(source, target)) == []
    (reason,) = CUDA.expression_refusals(cast(source, target))
    assert reason.startswith("the cuda device cannot cast")
    assert reason.endswith("SET device = 'cpu' for this query")


def test_refusals_are_found_below_and_in_aggregates() -> None:
    inner = cast(TEXT, pa.int64())
    outer = Call("add", (inner, ColumnRef(0, "b", pa.int64())), pa.int64())
    reasons = CUDA.expression_refusals(outer)
    assert len(reasons) == 1
    total = AggregateCall("sum", (outer,), pa.decimal128(38, 0))
    assert CUDA.aggregate_refusals(total) == reasons
    filtered = AggregateCall("count_star", (), pa.int64(), filter=Call("greater", (inner, outer), pa.bool_()))
    assert CUDA.aggregate_refusals(filtered) == reasons


def test_whatever_is_not_refused_is_implemented(device: object) -> None:
    conversions = sys.modules["bamquery.engine.cuda.casts.cast"].CONVERSIONS
    for source in PLAIN_TYPES:
        for target in PLAIN_TYPES:
            if source == target or not is_castable(source, target):
                continue
            if not CUDA.expression_refusals(cast(source, target)):
                assert (family(source), family(target)) in conversions, (source, target)


def test_every_function_and_aggregate_of_the_cpu_is_there(device: object) -> None:
    from bamquery.engine.cpu.expressions.conditions import FORMS
    from bamquery.engine.cpu.expressions.function_registry import FUNCTIONS

    here = set(sys.modules["bamquery.engine.cuda.expressions.function_registry"].FUNCTIONS)
    refused = {name for name, contract in SCALAR_FUNCTIONS.items() if contract.cuda_refusal}
    assert here | refused == set(FUNCTIONS)
    assert not here & refused
    assert set(sys.modules["bamquery.engine.cuda.expressions.conditions"].FORMS) == set(FORMS)
    families = sys.modules["bamquery.engine.cuda.aggregates.registry"].FAMILIES
    gaps = {name for name, (family, _) in AGGREGATES.items() if family not in families}
    assert gaps == {name for name, contract in AGGREGATE_FUNCTIONS.items() if contract.cuda_refusal}


def test_aggregates_that_libcudf_cannot_compute_are_named() -> None:
    half = Literal(pa.scalar(0.5, pa.float64()))
    for digits in (18, 19):
        kind = pa.decimal128(digits, 2)
        amounts = ColumnRef(0, "x", kind)
        reasons = [
            *CUDA.aggregate_refusals(AggregateCall("quantile_cont", (amounts,), kind, parameter=half)),
            *CUDA.aggregate_refusals(AggregateCall("mad", (amounts,), kind)),
        ]
        assert len(reasons) == (0 if digits == 18 else 2)
    assert reasons == [
        f"the cuda device has no {name} of DECIMAL(19,2): libcudf does not convert more than 18 digits to "
        "DOUBLE as the CPU does; SET device = 'cpu' for this query"
        for name in ("median or quantile_cont", "mad")
    ]
    assert not CUDA.aggregate_refusals(AggregateCall("mad", (amounts,), kind, order=(SortKey(amounts),)))[1:]
