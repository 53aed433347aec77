"""Kernels that find rows by their keys, as fibers, against plain Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from tests.unit.engine.cuda_scan.emulator import KERNELS

SIZES = (0, 1, 33, 1023, 1025, 2500)
_KINDS: dict[str, Any] = {
    "int8": pa.int8(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "date": pa.date32(),
    "decimal": pa.decimal128(38, 2),
    "text": pa.large_string(),
    "bool": pa.bool_(),
}


def _values(kind: str, count: int, random: np.random.Generator, nulls: float) -> pa.Array:
    """Few different ones, those that stand for none among them."""
    picked = random.integers(0, 40, count).tolist()
    missing = (random.random(count) < nulls).tolist()
    words: list[Any] = [-1, 0, 1, *range(10, 47)]
    match kind:
        case "uint16":
            words = [65535, *range(39)]
        case "int64":
            words = [-1, 0, 2**63 - 1, -(2**63), *(7 * n << 32 for n in range(36))]
        case "decimal":
            words = [Decimal(n << 63).scaleb(-2) for n in range(-20, 20)]
        case "text":
            words = ["a" * (n % 23) + chr(97 + n % 3) for n in range(39)] + [""]
        case "bool":
            words = [False, True] * 20
    return pa.array(
        [None if none else words[n] for n, none in zip(picked, missing, strict=True)], _KINDS[kind]
    )


def _keys(kinds: Sequence[str], count: int, seed: int, nulls: float = 0.2) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    columns = [_values(kind, count, random, nulls) for kind in kinds]
    return pa.RecordBatch.from_arrays(columns, [f"k{i}" for i in range(len(kinds))])


def _expected(probe: pa.RecordBatch, build: pa.RecordBatch, nulls_equal: Sequence[bool]) -> list[list[int]]:
    """For each probe row its partners."""
    places: dict[Any, list[int]] = {}
    for number, key in enumerate(_rows(build)):
        places.setdefault(key, []).append(number)
    return [
        places.get(key, [])
        if all(part is not None or equal for part, equal in zip(key, nulls_equal, strict=True))
        else []
        for key in _rows(probe)
    ]


def _rows(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _table(device: Any, build: pa.RecordBatch, nulls_equal: Sequence[bool]) -> Any:
    from bamquery.engine.cuda.keys.key_table import KeyTable

    frame = device.from_arrow(build)
    return KeyTable(device.kernels, frame.columns, frame.rows, nulls_equal)


def _pairs(table: Any, frame: Any, most: int, *, outer: bool) -> list[tuple[int, int]]:
    """All of them, made for some rows at a time."""
    from bamquery.engine.cuda.keys.row_pairs import RowPairs

    found = table.pairs(frame.columns, frame.rows, outer=outer)
    portions = [found] if isinstance(found, RowPairs) else []
    begin = first = 0
    while not portions or portions[-1].stop < frame.rows:
        end, last = found.find_end(begin, first, most)
        portions.append(found.pairs(begin, end, first, last))
        assert portions[-1].found.size() == last - first
        begin, first = end, last
    made = []
    for some in portions:
        places = range(some.stop - some.start) if some.positions is None else some.positions.values()
        made += [(some.start + p, f) for p, f in zip(places, some.found.values(), strict=True)]
    return made


def _check(
    device: Any, probe: pa.RecordBatch, build: pa.RecordBatch, nulls_equal: Sequence[bool], most: int = 10**9
) -> None:
    table, frame = _table(device, build, nulls_equal), device.from_arrow(probe)
    wanted, rows = _expected(probe, build, nulls_equal), build.num_rows
    own = _expected(build, build, nulls_equal)
    assert table.is_unique == all(len(places) < 2 for places in own)
    assert table.first_rows(frame.columns, frame.rows, 7).values() == [p[0] if p else 7 for p in wanted]
    assert table.has_rows(frame.columns, frame.rows).values() == list(map(bool, wanted))
    for alone in (False, True):
        chosen = [n for n, places in enumerate(wanted) if (not places) == alone]
        positions = table.select(frame.columns, frame.rows, alone=alone)
        assert (list(range(frame.rows)) if positions is None else positions.values()) == chosen
    inner = [(n, place) for n, places in enumerate(wanted) for place in places]
    assert _pairs(table, frame, most, outer=False) == inner
    outer = [(n, place) for n, places in enumerate(wanted) for place in places or [rows]]
    assert _pairs(table, frame, most, outer=True) == outer


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("equal", [False, True])
def test_one_column(device: Device[Any], kind: str, equal: bool) -> None:
    for held, nulls in ((0, 0.0), (1, 0.0), (300, 0.0), (300, 0.2)):
        _check(device, _keys([kind], 200, 1), _keys([kind], held, 2, nulls), [equal])


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("kinds", [["int64"], ["text", "int8"]], ids=["words", "rows"])
def test_sizes(device: Device[Any], rows: int, kinds: list[str]) -> None:
    equal = [False] * len(kinds)
    _check(device, _keys(kinds, rows, 3), _keys(kinds, 70, 4), equal)
    _check(device, _keys(kinds, 90, 3), _keys(kinds, rows, 4), equal)


@pytest.mark.parametrize("equal", [[False, False], [True, False], [True, True]], ids=str)
@pytest.mark.parametrize("kinds", [["text", "int64"], ["decimal", "bool"], ["date", "int32"]], ids=str)
def test_two_columns(device: Device[Any], kinds: list[str], equal: list[bool]) -> None:
    _check(device, _keys(kinds, 500, 5, 0.3), _keys(kinds, 900, 6, 0.3), equal)


@pytest.mark.parametrize("rows", [40, 2500])
@pytest.mark.parametrize("offset", [0, 20])
def test_keys_that_come_once(device: Device[Any], rows: int, offset: int) -> None:
    random = np.random.default_rng(7)
    build = pa.RecordBatch.from_arrays([pa.array(random.permutation(rows))], ["k"])
    probe = pa.RecordBatch.from_arrays([pa.array(random.integers(offset, rows + offset, 1500))], ["k"])
    _check(device, probe, build, [False])
    _check(device, build, build, [False])


@pytest.mark.parametrize("most", [1, 64, 1000])
def test_portions_of_pairs(device: Device[Any], most: int) -> None:
    probe, build = (_keys(["int8"], rows, seed, 0.1) for rows, seed in ((1100, 8), (150, 9)))
    _check(device, probe, build, [False], most)


@pytest.mark.parametrize("columns", [16, 17, 31, 33])
@pytest.mark.parametrize("equal", [False, True])
def test_more_columns_than_a_kernel_takes(device: Device[Any], columns: int, equal: bool) -> None:
    """Of rows that differ in any one of them, or in none."""

    def keys(rows: int, seed: int) -> pa.RecordBatch:
        random = np.random.default_rng(seed)
        table = np.zeros((columns, rows), np.int64)
        table[random.integers(0, columns, rows), np.arange(rows)] = random.integers(0, 2, rows)
        nulls = np.zeros((columns, rows), bool)
        nulls[random.integers(0, columns, rows), np.arange(rows)] = random.random(rows) < 0.3
        return pa.RecordBatch.from_arrays(
            [pa.array(v, mask=n) for v, n in zip(table, nulls, strict=True)],
            [str(i) for i in range(columns)],
        )

    _check(device, keys(150, 1), keys(120, 2), [equal] * columns)


@pytest.mark.parametrize("kinds", [["int64"], ["text"]], ids=str)
def test_slices(device: Any, kinds: list[str]) -> None:
    """Columns whose rows begin anywhere in memory."""
    probe, build = (_keys(kinds, rows, seed) for rows, seed in ((300, 10), (200, 11)))
    from bamquery.engine.cuda.keys.key_table import KeyTable

    mine, theirs = (device.slice(device.from_arrow(side), 37, 101) for side in (probe, build))
    table = KeyTable(device.kernels, theirs.columns, 101, [True])
    wanted = _expected(probe.slice(37, 101), build.slice(37, 101), [True])
    found = _pairs(table, mine, 10**9, outer=False)
    assert found == [(n, place) for n, places in enumerate(wanted) for place in places]


@pytest.mark.parametrize("kinds", [["int64"], ["text", "int8"]], ids=str)
def test_places_that_are_taken(
    device: Device[Any], monkeypatch: pytest.MonkeyPatch, kinds: list[str]
) -> None:
    """All keys but one place's: others are behind the last place, and at the first again."""
    from bamquery.engine.cuda.keys import key_table

    build = _keys(kinds, 31, 12)
    monkeypatch.setattr(key_table, "_place_count", lambda rows: 32)
    _check(device, _keys(kinds, 200, 13), build, [False] * len(kinds))


@pytest.mark.parametrize("equal", [False, True])
def test_tables_under_a_limit_have_no_words(
    device: Any, monkeypatch: pytest.MonkeyPatch, equal: bool
) -> None:
    probe, build = (_keys(["int64"], rows, seed) for rows, seed in ((300, 15), (200, 16)))
    sizes = []
    for limit in (1 << 30, 1 << 14):
        monkeypatch.setattr(device.session, "limit", limit)
        _check(device, probe, build, [equal])
        sizes.append(_table(device, _keys(["int64"], 200, 17, 0), [equal]).nbytes)
    assert sizes == [16 * 513, 4 * 512]


def test_pairs_beside_rows_that_have_none(device: Any) -> None:
    from bamquery.engine.cuda.keys.row_pairs import pairs_and_rows_alone

    random = np.random.default_rng(14)
    for rows in (0, 1, 40, 1500):
        positions = np.sort(random.integers(0, max(rows, 1), 2 * rows)).astype(np.int32)
        found = random.integers(0, 9, 2 * rows).astype(np.int32)
        batch = pa.RecordBatch.from_arrays([pa.array(positions), pa.array(found)], ["p", "f"])
        columns = device.from_arrow(batch).columns
        made = pairs_and_rows_alone(device.kernels, *columns, rows, 99)
        pairs = made.pairs(0, rows, 0, made.total)
        alone = [(row, 99) for row in set(range(rows)) - set(positions.tolist())]
        both = sorted(
            [*zip(positions.tolist(), found.tolist(), strict=True), *alone], key=lambda pair: pair[0]
        )
        assert list(zip(pairs.positions.values(), pairs.found.values(), strict=True)) == both


@pytest.mark.usefixtures("device")
def test_structures_are_those_of_the_headers() -> None:
    from bamquery.engine.cuda.keys import key_columns, key_table, row_pairs

    sizes = {"byte*": 8, "uint32_t*": 8, "WordPlace*": 8, "Run*": 8, "uint64_t": 8, "uint32_t": 4}
    for file, name, packer in (
        ("key_columns", "KeyColumn", key_columns._COLUMN),
        ("join_table", "WordTable", key_table._TABLE),
        ("join_table", "RowTable", key_table._TABLE),
        ("join_table", "PairRule", row_pairs._RULE),
    ):
        text = (KERNELS / "keys" / f"{file}.hpp").read_text()
        body = text.split(f"struct {name} {{", 1)[1].split("__device__", 1)[0].split("\n};", 1)[0]
        fields = re.findall(r"^  (?:const )?([\w*]+) (?:const )?\w+;", body, re.M)
        letters = ["Q" if sizes[field] == 8 else "I" for field in fields]
        assert "<" + "".join(letters) == packer.format
        assert packer.size == sum(sizes[field] for field in fields)


@pytest.mark.usefixtures("device")
def test_kernels_take_what_is_packed(emulator: Any) -> None:
    from bamquery.engine.cuda.keys import key_columns, key_table, row_pairs

    column, table, rule = key_columns._COLUMN.size, key_table._TABLE.size, row_pairs._RULE.size
    columns = len(key_columns.pack_columns([]))
    sizes = {
        "join_enter_words": (column, 4, table, 8),
        "join_enter_rows": (columns, 4, table, 8),
        "join_find_words": (column, 4, table, 4, rule, 8, 8, 8, 8),
        "join_find_rows": (columns, 4, table, columns, 4, rule, 8, 8, 8, 8),
        "join_find_runs": (4, rule, 4, 8, 8, 8),
    }
    for name, expected in sizes.items():
        assert emulator.kernel("keys/join_table", name, ()).sizes == expected
