"""Joins that the cuda device does by itself, over the stand-in for libcudf."""

from __future__ import annotations

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

    monkeypatch.setattr(join_table, "_LARGEST", 64)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("rows", [0, 1, 64, 65, 700])
def test_portions_are_as_long_as_memory_allows(device: Device[Any], rows: int) -> None:
    table: Any = device.join_table(_frame(device, list(range(33))), [False])
    portions = list(table.portions(rows))
    assert [start for start, _ in portions] == list(range(0, max(rows, 1), 64))
    assert [stop for _, stop in portions] == [*range(64, rows, 64), rows]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize(
    "keys",
    [[1] * 30, [1, 2, None, 3] * 20, [None] * 4 + [2] * 4, [2] * 9 + [1] * 9, [3] * 20, [2, 1, 2]],
    ids=str,
)
def test_portions_have_few_pairs(
    device: Device[Any], keys: list[int | None], equal: bool, outer: bool
) -> None:
    held = [*[1] * 33, *[2] * 90, *[None] * 40, 5]
    table: Any = device.join_table(_frame(device, held), [equal])
    portions = list(table.pairs(_frame(device, keys), outer=outer))
    starts = [portion.start for portion in portions]
    assert starts == [0, *(portion.stop for portion in portions[:-1])]
    assert portions[-1].stop == len(keys)
    found = []
    for portion in portions:
        some = keys[portion.start : portion.stop]
        most = max(held.count(key) for key in some)
        count = portion.found.size()
        assert count < 64 + most or len(some) == 1
        places = range(len(some)) if portion.positions is None else portion.positions.values()
        found += [(portion.start + p, f) for p, f in zip(places, portion.found.values(), strict=True)]
    expected = []
    for row, key in enumerate(keys):
        partners = [n for n, other in enumerate(held) if other == key and (equal or key is not None)]
        expected += [(row, n) for n in partners or [len(held)] * outer]
    assert found == expected


@pytest.mark.parametrize("held", [[*range(40)], [*range(40), 3]], ids=["once", "twice"])
def test_threads_note_found_rows(device: Device[Any], held: list[int]) -> None:
    build = _frame(device, held)
    rows: Any = device.join_table(build, [False])
    joined = rows.start_join(DeviceJoin("right", build, None))
    assert joined.unmatched_rows() is build
    together = Barrier(4)

    def look_up(number: int) -> None:
        frame = _frame(device, list(range(9 * number, 9 * number + 9)))
        together.wait(timeout=30)
        list(joined.probe(frame, frame))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(look_up, range(4)))
    assert joined.unmatched_rows().columns[0].values() == [36, 37, 38, 39]


def test_rows_that_come_once_each_are_not_copied(device: Device[Any]) -> None:
    build = _frame(device, list(range(40)))
    frame = _frame(device, [5, 3, 5, 39])
    table: Any = device.join_table(build, [False])
    for kind in ("inner", "left", "right", "full", "single", "semi"):
        (made,) = table.start_join(DeviceJoin(kind, build, None)).probe(frame, frame)
        assert made.columns[0] is frame.columns[0]
        assert [column.values() for column in made.columns[1:]] == [[5, 3, 5, 39]] * (kind != "semi")


@pytest.mark.parametrize(
    ("kind", "held", "launches"),
    [
        ("semi", [1, 2, 2], ["join_find_words", "scan_string_tiles", "join_select"]),
        ("anti", [1, 2, 2], ["join_find_words", "scan_string_tiles", "join_select"]),
        ("mark", [1, 2, 2], ["join_find_words"]),
        ("inner", [1, 2], ["join_find_words", "scan_string_tiles", "join_select"]),
        ("left", [1, 2], ["join_find_words"]),
        ("single", [1, 2], ["join_find_words"]),
        ("full", [1, 2], ["join_find_words", "join_flag"]),
        (
            "inner",
            [1, 2, 2],
            ["join_find_words", "scan_string_tiles", "scan_string_sums", "join_pairs"],
        ),
        (
            "right",
            [1, 2, 2],
            ["join_find_words", "scan_string_tiles", "scan_string_sums", "join_pairs", "join_flag"],
        ),
    ],
)
def test_joins_launch_few_kernels(
    device: Any, monkeypatch: pytest.MonkeyPatch, kind: Any, held: list[int], launches: list[str]
) -> None:
    build, frame = _frame(device, held), _frame(device, [2, 7, 1, 2])
    joined = device.join_table(build, [False]).start_join(DeviceJoin(kind, build, None))
    list(joined.probe(frame, frame))  # makes what is made once
    launched: list[str] = []
    plain = device.session.launcher.start

    def start(kernel: Any, *arguments: Any, **options: Any) -> None:
        launched.append(kernel.name)
        plain(kernel, *arguments, **options)

    monkeypatch.setattr(device.session.launcher, "start", start)
    list(joined.probe(frame, frame))
    assert launched == launches
