"""Joins that the cuda device does by itself, over the stand-in for libcudf."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.operators.join.device_join import DeviceJoin
from tests.devices import joined_rows as checks

SIZES = (0, 1, 40)


def test_kinds(device: Device[Any]) -> None:
    checks.check_kinds(device, SIZES)


@pytest.mark.slow
def test_residuals(device: Device[Any]) -> None:
    checks.check_residuals(device, SIZES[::2])


def test_types(device: Device[Any]) -> None:
    checks.check_types(device)


def test_several_partners(device: Device[Any]) -> None:
    checks.check_several_partners(device)


def test_errors(device: Device[Any]) -> None:
    checks.check_errors(device)


@pytest.mark.slow
def test_portions(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_portions(device, monkeypatch)


def test_texts_in_portions(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_texts_in_portions(device, monkeypatch)


def test_nothing_is_downloaded(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_nothing_is_downloaded(device, monkeypatch)


def _frame(device: Device[Any], values: list[int | None]) -> Any:
    return device.from_arrow(pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], ["k"]))


@pytest.fixture
def few(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Portions of few rows."""
    from bamquery.engine.cuda.keys import join_table

    monkeypatch.setattr(join_table, "_PORTION", 8)
    monkeypatch.setattr(join_table, "_LARGEST", 64)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("held", "rows", "longest"),
    [
        (list(range(33)), 100, 33),
        (list(range(33)), 20, 20),
        (list(range(33)), 0, 0),
        (list(range(500)), 700, 64),  # as many rows as it gets at most
        ([*range(30), 1, 1, 1], 100, 16),  # no more than 64 pairs
        ([1] * 33, 100, 8),
        (list(range(5)), 100, 8),
        ([*range(9), *[None] * 90], 100, 9),  # nulls are equal to nothing
        ([], 100, 8),
    ],
)
def test_portions_are_as_long_as_the_table(
    device: Device[Any], held: list[int | None], rows: int, longest: int
) -> None:
    table: Any = device.join_table(_frame(device, held), [False])
    portions = list(table.portions(_frame(device, [-1] * rows)))
    assert [start for start, _ in portions] == list(range(0, max(rows, 1), longest or 8))
    assert portions[0] == (0, longest)
    assert portions[-1][1] == rows


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize(
    "keys", [[1] * 30, [1, 2, None, 3] * 20, [None] * 4 + [2] * 4, [2] * 9 + [1] * 9, [3] * 20], ids=str
)
def test_portions_have_few_pairs(device: Device[Any], keys: list[int | None], equal: bool) -> None:
    held = [*[1] * 33, *[2] * 90, *[None] * 40, 5]
    table: Any = device.join_table(_frame(device, held), [equal])
    portions = list(table.portions(_frame(device, keys)))
    assert [start for start, _ in portions] == [0, *(stop for _, stop in portions[:-1])]
    assert portions[-1][1] == len(keys)
    counts = [held.count(key) if equal or key is not None else 0 for key in keys]
    for start, stop in portions:
        assert start < stop
        assert sum(counts[start:stop]) < 64 + max(counts[start:stop]) or stop - start == 1
    assert len(portions) <= -(-len(keys) // 8) + sum(counts) // 64


def test_threads_note_found_rows_one_after_the_other(
    device: Device[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each copies the notes so far: what another one writes meanwhile would be lost."""
    from bamquery.engine.cuda.keys import device_join as joined_rows

    held = _frame(device, list(range(40)))
    table: Any = device.join_table(held, [False])
    rows = table.start_join(DeviceJoin("right", held, None))
    plain = joined_rows.mark_rows

    def slowly(*arguments: Any) -> Any:
        made = plain(*arguments)
        time.sleep(0.02)
        return made

    monkeypatch.setattr(sys.modules[joined_rows.__name__], "mark_rows", slowly)
    together = Barrier(4)

    def look_up(number: int) -> None:
        frame = _frame(device, list(range(9 * number, 9 * number + 9)))
        together.wait(timeout=30)
        list(rows.probe(frame, frame))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(look_up, range(4)))
    assert rows.unmatched_rows().columns[0].values() == [36, 37, 38, 39]
