"""Scans of columns that are all in the GPU's memory, over a stand-in for libcudf."""

from __future__ import annotations

import importlib
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.operators.scan.chunk_selection import SelectionPlan
from bamquery.engine.operators.scan.filter_order import AdaptiveFilterOrder, FilterStep
from bamquery.engine.profiling.scan_profile import ColumnProfile
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field

ROWS = 100
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])


def less(column: int, bound: int) -> Expression:
    """Over a frame of the one column."""
    field = SCHEMA.field(column)
    sides = (ColumnRef(0, field.name, field.type), Literal(pa.scalar(bound, pa.int64())))
    return Call("less", sides, pa.bool_())


def step(number: int, column: int, bound: int, *, can_fail: bool = False) -> FilterStep:
    return FilterStep(number, (column,), less(column, bound), (), can_fail)


class Scan:
    """A table of three columns: 0 to 99, the same doubled, and from 99 down to 0."""

    def __init__(self, device: Device[Any], steps: list[FilterStep], outputs: tuple[int, ...]) -> None:
        self.device = device
        self.asked = 0
        self.fresh: frozenset[str] = frozenset()
        values = [list(range(ROWS)), [2 * n for n in range(ROWS)], list(range(ROWS))[::-1]]
        self._batch = pa.RecordBatch.from_arrays([pa.array(v, pa.int64()) for v in values], schema=SCHEMA)
        columns = {name: ColumnProfile(name, "") for name in SCHEMA.names}
        self.profile = SimpleNamespace(columns=columns, lock=threading.Lock(), rows_scanned=0)
        order = AdaptiveFilterOrder(steps, [0.5] * len(steps))
        self.plan = SelectionPlan(outputs, tuple(steps), SCHEMA, order)

    def run(self) -> list[dict[str, int]]:
        """The rows that pass."""
        module = importlib.import_module("bamquery.engine.cuda.cache.cached_scan")
        cache = importlib.import_module("bamquery.engine.cuda.cache.column_cache")
        frame = self.device.from_arrow(self._batch)
        held = {
            name: cache.CachedColumn(name, column, 8 * ROWS)
            for name, column in zip(SCHEMA.names, frame.columns, strict=True)
        }
        work = SimpleNamespace(
            plan=self.plan, fragments=[SimpleNamespace(rows=ROWS)], profile=self.profile, check=self._check
        )
        fields = [Field(SCHEMA.field(c).name, SCHEMA.field(c).type) for c in self.plan.outputs]
        rows: list[dict[str, int]] = []
        session = self.device.session  # type: ignore[attr-defined]
        what = (session, self.device.kernels, self.device, work, held, self.fresh)
        for found in module._CachedScan(*what).frames():
            rows += self.device.to_arrow(found, fields).to_pylist()
        return rows

    def _check(self) -> None:
        self.asked += 1


def test_rows_pass_conditions_taken_together_and_those_that_can_fail(device: Device[Any]) -> None:
    """Of each column as many rows are counted as were looked at, and their share of its bytes."""
    scan = Scan(device, [step(0, 0, 40), step(1, 1, 60), step(2, 2, 75, can_fail=True)], (2,))
    assert scan.run() == [{"c": 99 - n} for n in range(25, 30)]
    needed = {name: one.rows_needed for name, one in scan.profile.columns.items()}
    assert needed == {"a": ROWS, "b": ROWS, "c": 30}
    assert scan.profile.columns["c"].bytes_needed == 8 * 30
    assert {one.strategy for one in scan.profile.columns.values()} == {"cached"}
    assert scan.profile.rows_scanned == ROWS


def test_steps_of_one_number_are_two(device: Device[Any]) -> None:
    """Those that others tell of are numbered on, and may get the number of one that is there."""
    scan = Scan(device, [step(0, 0, 40, can_fail=True), step(0, 1, 60, can_fail=True)], (0,))
    assert scan.run() == [{"a": n} for n in range(30)]


def test_columns_that_were_read_for_it_are_not_the_cache_s(device: Device[Any]) -> None:
    scan = Scan(device, [step(0, 0, 40)], (1,))
    scan.fresh = frozenset("b")
    assert len(scan.run()) == 40
    assert {name: one.cached for name, one in scan.profile.columns.items()} == {"a": 1, "b": 0, "c": 0}


def test_no_row_passes(device: Device[Any]) -> None:
    scan = Scan(device, [step(0, 0, 0), step(1, 1, 5, can_fail=True)], (0, 1))
    assert scan.run() == []
    assert scan.profile.columns["b"].rows_needed == 0


def test_all_rows_pass(device: Device[Any]) -> None:
    assert len(Scan(device, [], (1,)).run()) == ROWS
    assert len(Scan(device, [step(0, 0, 1000)], (1, 2)).run()) == ROWS


def test_tables_are_looked_at_in_pieces(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In between somebody may stop the query."""
    module = importlib.import_module("bamquery.engine.cuda.cache.cached_scan")
    monkeypatch.setattr(module, "_PIECE", 30)
    scan = Scan(device, [step(0, 1, 130)], (0,))
    assert scan.run() == [{"a": n} for n in range(65)]
    assert scan.asked == 4
    assert scan.profile.columns["a"].rows_needed == 65
    assert scan.profile.columns["b"].rows_needed == ROWS


def test_few_strings_are_their_own_dictionary(device: Device[Any]) -> None:
    """What a join picks of them are their numbers."""
    module = importlib.import_module("bamquery.engine.cuda.cache.cached_scan")
    kernels: Any = device.kernels  # type: ignore[attr-defined]
    kind = pa.large_string()
    words = ["JAPAN", "PERU", "JAPAN", ""]
    (column,) = device.from_arrow(pa.record_batch([pa.array(words, kind)], ["w"])).columns
    found = module.as_dictionary(kernels, device, pa.field("w", kind), column)
    assert found.dictionary.host.to_pylist() == words
    assert not found.dictionary.distinct
    assert found.size() == 4
    frames = importlib.import_module("bamquery.engine.cuda.frames")
    taken = device.take(frames.make_frame([found], 4), np.array([3, 1, 1, 0]))
    assert taken.held[0].dictionary is found.dictionary
    assert device.to_arrow(taken, [Field("w", kind)]).column(0).to_pylist() == ["", "PERU", "PERU", "JAPAN"]


@pytest.mark.parametrize("values", [["a", None], []])
def test_other_strings_are_as_they_are(device: Device[Any], values: list[str | None]) -> None:
    module = importlib.import_module("bamquery.engine.cuda.cache.cached_scan")
    kernels: Any = device.kernels  # type: ignore[attr-defined]
    kind = pa.large_string()
    (column,) = device.from_arrow(pa.record_batch([pa.array(values, kind)], ["w"])).columns
    assert module.as_dictionary(kernels, device, pa.field("w", kind), column) is column
