"""Rows that conditions select, by kernels run as fibers."""

from __future__ import annotations

import gc
import importlib
import weakref
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import Call, ColumnRef, Literal, Members
from tests.devices import selections

BOOL, LONG = pa.bool_(), pa.int64()
X = ColumnRef(0, "x", LONG)


def test_sets(device: Device[Any]) -> None:
    selections.check_sets(device, (33, 1025))


def test_far_values(device: Device[Any]) -> None:
    selections.check_far_values(device)


def test_lost_values(device: Device[Any]) -> None:
    selections.check_lost_values(device)


def test_what_kernels_select_by(device: Device[Any]) -> None:
    """Texts that are in no dictionary, and sets of numbers that have no words, are left to libcudf."""

    def never(_: int) -> bool:
        return False

    module = importlib.import_module("bamquery.engine.cuda.pipeline.row_selection")
    less = Call("less", (X, Literal(pa.scalar(5, LONG))), BOOL)
    member = Call("in", (X, Members(pa.array([1, 2, 3], LONG))), BOOL)
    name = ColumnRef(1, "name", pa.large_string())
    like = Call("like", (name, Literal(pa.scalar("a%", pa.large_string()))), BOOL)
    wide = ColumnRef(2, "wide", pa.uint64())
    of_wide = Call("in", (wide, Members(pa.array([1], pa.uint64()))), BOOL)
    assert module.is_selectable(Call("and", (less, member), BOOL), never)
    assert not module.is_selectable(Call("and", (less, like), BOOL), never)
    assert module.is_selectable(Call("and", (less, like), BOOL), lambda place: place == 1)
    assert not module.is_selectable(of_wide, never)
    assert not module.is_selectable(Call("or", (less, member), BOOL), never)


def test_kernels_are_what_selects(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a column of flags, and without a look at each value of a set."""
    module = importlib.import_module("bamquery.engine.cuda.device")

    def fail(*_: object) -> None:
        raise AssertionError("asked of libcudf")

    monkeypatch.setattr(module.CudaDevice, "_mask", fail)
    frame = device.from_arrow(pa.RecordBatch.from_arrays([pa.array([4, 1, None, 9], LONG)], ["x"]))
    member = Call("in", (X, Members(pa.array([9, 4], LONG))), BOOL)
    assert device.read_positions(device.matching_positions(member, frame)).tolist() == [0, 3]


def test_sets_that_have_no_memory_are_left_to_libcudf(
    device: Device[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = device.session  # type: ignore[attr-defined]
    allocate = session.allocate

    def refuse(size: int, what: str, stream: object = None) -> Any:
        if what == "a set of values":
            raise MemoryLimitError("a set of values needs more")
        return allocate(size, what, stream)

    monkeypatch.setattr(session, "allocate", refuse)
    frame = device.from_arrow(pa.RecordBatch.from_arrays([pa.array([4, 1, None, 2**29], LONG)], ["x"]))
    member = Call("in", (X, Members(pa.array([2**29, 4], LONG))), BOOL)
    assert device.read_positions(device.matching_positions(member, frame)).tolist() == [0, 3]


@pytest.mark.parametrize("negated", [False, True])
def test_lists_of_values_do_not_outlive_their_query(device: Device[Any], negated: bool) -> None:
    """Kernels and programs are kept, a join's keys are not: neither as a set, nor within a condition."""
    frame = device.from_arrow(pa.RecordBatch.from_arrays([pa.array([4, 1, None, 9], LONG)], ["x"]))
    values = pa.array([9, 4], LONG)
    dead = weakref.ref(values)
    condition: Any = Call("in", (X, Members(values)), BOOL)
    if negated:
        small = Call("less", (Call("multiply", (X, X), LONG), X), BOOL)
        condition = Call("or", (Call("not", (condition,), BOOL), small), BOOL)
    found = device.read_positions(device.matching_positions(condition, frame)).tolist()
    assert found == ([1] if negated else [0, 3])
    del values, condition
    if negated:
        del small
    gc.collect()
    assert dead() is None


def test_sets_are_made_once_for_all_chunks(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """And go with the list of their values, or when others came after them."""
    module = importlib.import_module("bamquery.engine.cuda.pipeline.member_sets")
    made: list[int] = []
    make = module._make_sets

    def counted(session: Any, members: Any) -> Any:
        made.append(len(members))
        return make(session, members)

    monkeypatch.setattr(module, "_make_sets", counted)
    module._sets.clear()
    frame = device.from_arrow(pa.RecordBatch.from_arrays([pa.array([4, 1, None, 9], LONG)], ["x"]))
    member = Call("in", (X, Members(pa.array([9, 4], LONG))), BOOL)
    for _ in range(3):
        assert device.read_positions(device.matching_positions(member, frame)).tolist() == [0, 3]
    assert made == [1]
    assert len(module._sets) == 1
    others = [Call("in", (X, Members(pa.array([n], LONG))), BOOL) for n in range(20)]
    for n, other in enumerate(others):
        assert len(device.read_positions(device.matching_positions(other, frame))) == (n in (1, 4, 9))
    assert len(module._sets) == module._KEPT_SETS
    del member, other, others
    gc.collect()
    assert not module._sets
