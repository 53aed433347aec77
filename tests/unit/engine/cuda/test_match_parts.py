"""LIKE by a kernel that is run as fibers."""

from __future__ import annotations

import importlib
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.plan.expressions import Call, ColumnRef, Literal
from tests.devices import patterns

TEXT = pa.large_string()


@pytest.fixture(name="module")
def _module(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    found = importlib.import_module("bamquery.engine.cuda.strings.match_parts")
    monkeypatch.setattr(found, "MANY_ROWS", 1)
    return found


@pytest.mark.parametrize("rows", [1, 31, 33, 290])
def test_patterns(device: Device[Any], module: Any, rows: int) -> None:
    patterns.check_like(device, module.match_parts, rows, rows)


def test_few_rows_are_libcudfs(device: Device[Any]) -> None:
    """Such as a dictionary's values: the kernel would have to be compiled for them."""
    module = importlib.import_module("bamquery.engine.cuda.strings.match_parts")
    frame = device.from_arrow(pa.RecordBatch.from_arrays([pa.array(["ab"], TEXT)], ["text"]))
    assert module.match_parts(device.kernels, frame.columns[0], "%b%") is None  # type: ignore[attr-defined]


def test_conditions_take_it(device: Device[Any], module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    basic = importlib.import_module("bamquery.engine.cuda.strings.basic")
    asked: list[str] = []

    def match(kernels: Any, column: Any, pattern: str) -> Any:
        asked.append(pattern)
        return module.match_parts(kernels, column, pattern)

    monkeypatch.setattr(basic, "match_parts", match)
    frame = device.from_arrow(pa.RecordBatch.from_arrays([pa.array(["ab", None, "ba"], TEXT)], ["text"]))
    condition = Call("like", (ColumnRef(0, "text", TEXT), Literal(pa.scalar("%b", TEXT))), pa.bool_())
    assert device.read_positions(device.matching_positions(condition, frame)).tolist() == [0]
    assert asked == ["%b"]


def test_libcudf_answers_while_it_is_compiled(
    device: Device[Any], module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = device.session.launcher  # type: ignore[attr-defined]
    monkeypatch.setattr(type(launcher), "ready_kernel", lambda *_: None)
    frame = device.from_arrow(pa.RecordBatch.from_arrays([pa.array(["ab", "ba"], TEXT)], ["text"]))
    condition = Call("like", (ColumnRef(0, "text", TEXT), Literal(pa.scalar("%b", TEXT))), pa.bool_())
    assert device.read_positions(device.matching_positions(condition, frame)).tolist() == [0]
