"""Keys that stay on the GPU, over a stand-in for libcudf; what joins tell scans by them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.join import key_filter
from bamquery.engine.operators.join.key_filter import KeySummary
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.plan.expressions import Call, ColumnRef
from bamquery.storage.statistics.late_values import LateValues
from tests.devices import late_keys

LONG = pa.int64()
KEY = (ColumnRef(0, "k", LONG),)


@pytest.mark.parametrize("rows", [4, 40])
def test_conditions_look_among_them(device: Device[Any], rows: int) -> None:
    late_keys.check_late_keys(device, rows)


def _published(
    device: Device[Any], frames: list[list[int | None]], *, together: bool = True, nulls_equal: bool = False
) -> DynamicFilter:
    condition, known = JoinCondition(KEY, KEY, (nulls_equal,)), DynamicFilter("a test")
    with ExecutionContext(device) as context, KeySummary(context, condition, {0: known}) as summary:
        made = [late_keys.frame_of(device, pa.array(keys, LONG)) for keys in frames]
        if together:
            summary.add_all(made)
        else:
            for one in made:
                summary.add(one)
        summary.publish()
    assert context.memory.used == 0
    return known


def test_joins_keep_many(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_KEPT_ROWS", range(3, 9))
    (one,) = _published(device, [[7, 9, 7], [None, 8]]).conditions
    assert one.members is not None
    assert isinstance(one.members.values, LateValues)
    assert (one.text("k"), one.members.values.bounds) == ("k IN (4 values)", (7, 9))
    condition = one.as_expression(ColumnRef(0, "c0", LONG))
    probe = late_keys.frame_of(device, pa.array([1, 8, None, 7, 10], LONG))
    assert device.read_positions(device.matching_positions(condition, probe)).tolist() == [1, 3]


def test_nulls_that_are_equal_are_wanted(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_KEPT_ROWS", range(3, 9))
    (one,) = _published(device, [[7, 9, None]], nulls_equal=True).conditions
    condition = one.as_expression(ColumnRef(0, "c0", LONG))
    probe = late_keys.frame_of(device, pa.array([1, 9, None, 8], LONG))
    assert device.read_positions(device.matching_positions(condition, probe)).tolist() == [1, 2]


@pytest.mark.parametrize("keys", [[1, 2], [*range(9)], [None, None, None]])
def test_others_are_as_on_a_processor(
    device: Device[Any], keys: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few, and more than are kept; of none but nulls nothing is said."""
    monkeypatch.setattr(key_filter, "_KEPT_ROWS", range(3, 9))
    found = _published(device, [keys]).conditions
    assert not any(one.members is not None for one in found)
    assert bool(found) == (keys[0] is not None)


def test_keys_that_come_one_after_the_other_are_not_kept(
    device: Device[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_filter, "_KEPT_ROWS", range(3, 9))
    monkeypatch.setattr(key_filter, "_MOST_VALUES", 2)
    (one,) = _published(device, [[7, 9, 7], [8]], together=False).conditions
    assert one.members is not None
    assert sorted(one.members.values.to_pylist()) == [7, 8, 9]


def test_of_keys_far_apart_few_are_a_list(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("bamquery.engine.cuda.keys.late_keys")
    monkeypatch.setattr(key_filter, "_KEPT_ROWS", range(3, 9))
    far = [[-(2**62), 5, 2**62]]
    (one,) = _published(device, far).conditions
    probe = late_keys.frame_of(device, pa.array([5, 6, 2**62], LONG))
    condition = one.as_expression(ColumnRef(0, "c0", LONG))
    assert device.read_positions(device.matching_positions(condition, probe)).tolist() == [0, 2]
    monkeypatch.setattr(module, "_MOST_APART", 2)
    assert [one.members for one in _published(device, far).conditions] == [None, None]


def test_they_are_cast_as_others_are(device: Device[Any]) -> None:
    """To the type of a column that is compared in a wider one: what it has no value for is left out."""
    from bamquery.engine.operators.base.dynamic_filter import DynamicCondition
    from bamquery.plan.expressions import Cast, Literal, Members

    late = late_keys.late_values_of(device, [pa.array([3, 300, -2], LONG)])
    ends = tuple(Literal(pa.scalar(one, LONG)) for one in (-2, 300))
    value = Cast(ColumnRef(0, "c0", pa.int8()), LONG)
    found: Any = DynamicCondition("in", ends, members=Members(late)).as_expression(value)
    assert isinstance(found, Call)
    assert sorted(found.arguments[1].values.to_pylist()) == [-2, 3]


def test_zone_maps_go_by_their_bounds(device: Device[Any]) -> None:
    from bamquery.storage.statistics.predicate import RangePredicate
    from bamquery.storage.statistics.zone_map import Zones

    low, high = np.array([0, 10, 20, 30]), np.array([9, 19, 29, 39])
    zeros, yes = np.zeros(4, np.int64), np.ones(4, np.bool_)
    zones = Zones(zeros + 5, pa.array(low), pa.array(high), zeros, zeros, yes, ~yes)
    late = late_keys.late_values_of(device, [pa.array([15, 25], LONG)])
    found = RangePredicate("c0", "in", members=late)
    assert zones.possible(found).tolist() == [False, True, True, False]
    assert found.ordered_values.tolist() == [15, 25]
