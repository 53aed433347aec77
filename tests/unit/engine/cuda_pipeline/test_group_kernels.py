"""Kernels that group rows by keys, merge cells and make values of them."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bamquery.engine.cuda.pipeline.cell_layout import WordKind, pack_words
from tests.unit.engine.cuda_scan.emulator import Emulator

_NOBODY = 0xFFFFFFFF
_MOST_KEYS = 16


class Keys:
    """Key columns: numpy arrays of a fixed width, or lists of bytes; None is null."""

    def __init__(self, columns: list[list[Any]], dtypes: list[Any]) -> None:
        self._held: list[Any] = []
        self.rows = list(zip(*columns, strict=True))
        packed = b""
        for values, dtype in zip(columns, dtypes, strict=True):
            valid = np.packbits([False] * 3 + [v is not None for v in values], bitorder="little")
            valid = np.concatenate([valid, np.zeros(8, np.uint8)])
            self._held.append(valid)
            if dtype is bytes:
                text = b"".join(v or b"" for v in values) + b"\0"
                offsets = np.cumsum([0, *(len(v or b"") for v in values)]).astype(np.int32)
                held = np.frombuffer(text, np.uint8)
                self._held += [held, offsets]
                packed += struct.pack(
                    "<QQQQII", held.ctypes.data, offsets.ctypes.data, valid.ctypes.data, 3, 4, 0
                )
                continue
            array = np.array([0 if v is None else v for v in values], dtype)
            self._held.append(array)
            packed += struct.pack(
                "<QQQQII", array.ctypes.data, 0, valid.ctypes.data, 3, array.dtype.itemsize, 0
            )
        self.packed = packed + bytes(40 * (_MOST_KEYS - len(columns))) + struct.pack("<Q", len(columns))


def address(array: NDArray[Any]) -> bytes:
    return int(array.ctypes.data).to_bytes(8, "little")


def word(number: int) -> bytes:
    return number.to_bytes(4, "little")


def _grouped(emulator: Emulator, keys: Keys, places: int, most: int) -> Any:
    """Codes and first rows of groups; None where the table was full."""
    rows = len(keys.rows)
    vectors = -(-rows // 1024)
    table = np.full(places, _NOBODY, np.uint32)
    taken, full = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    where = np.full(rows, 0xABABABAB, np.uint32)
    bits, before = (np.zeros(32 * vectors, np.uint32) for _ in range(2))
    counts, offsets = np.zeros(vectors, np.uint32), np.zeros(vectors + 1, np.uint32)

    def run(name: str, *packed: bytes) -> None:
        kernel = emulator.kernel("keys/group_rows", name, ())
        assert [len(one) for one in packed] == list(kernel.sizes)
        kernel.run(packed, 2, 256)

    run(
        "keys_enter",
        *(keys.packed, word(rows), address(table), word(places - 1), word(most), address(taken)),
        *(address(full), address(where)),
    )
    run(
        "keys_first",
        *(address(table), address(where), word(rows), address(full), address(bits), address(before)),
        address(counts),
    )
    offsets[1:] = np.cumsum(counts)
    if full[0]:
        return None
    codes = np.full(rows, -1, np.int32)
    firsts = np.full(int(offsets[-1]), -1, np.int32)
    run(
        "keys_number",
        *(address(table), address(where), word(rows), address(bits), address(before), address(offsets)),
        *(address(codes), address(firsts)),
    )
    return codes.tolist(), firsts.tolist()


def _expected(rows: list[Any]) -> tuple[list[int], list[int]]:
    numbers: dict[Any, int] = {}
    firsts = []
    codes = []
    for at, row in enumerate(rows):
        if row not in numbers:
            numbers[row] = len(numbers)
            firsts.append(at)
        codes.append(numbers[row])
    return codes, firsts


@pytest.mark.parametrize("rows", [1, 31, 1024, 1025, 3000])
@pytest.mark.parametrize("dtypes", [[np.int8], [np.int64], [np.int32, bytes], [bytes], ["V16", np.uint16]])
def test_rows_are_grouped_in_order_of_appearance(emulator: Emulator, rows: int, dtypes: list[Any]) -> None:
    """Of every width, strings of any lengths, nulls equal to each other."""
    random = np.random.default_rng(rows)
    columns = []
    for dtype in dtypes:
        chosen = random.integers(0, 40, rows).tolist()
        if dtype is bytes:
            columns.append([None if n == 3 else (b"some text" * 3)[: n % 20] for n in chosen])
        elif dtype == "V16":
            columns.append([None if n == 3 else np.void(struct.pack("<qq", n, -n)) for n in chosen])
        else:
            columns.append([None if n == 3 else n for n in chosen])
    if dtypes[0] == "V16":
        dtypes = [np.dtype("V16"), *dtypes[1:]]
        columns[0] = [np.void(bytes(16)) if v is None else v for v in columns[0]]
        keys = Keys(columns, dtypes)
        keys.rows = [(bytes(one), *rest) for one, *rest in keys.rows]
    else:
        keys = Keys(columns, dtypes)
    assert _grouped(emulator, keys, 4096, 4096) == _expected(keys.rows)


def test_a_table_of_few_places_still_tells_keys_apart(emulator: Emulator) -> None:
    """Keys that share places go on to the next ones."""
    numbers = np.random.default_rng(5).integers(0, 15, 500).tolist()
    keys = Keys([numbers], [np.int32])
    assert _grouped(emulator, keys, 16, 16) == _expected(keys.rows)


def test_a_table_that_is_too_small_says_so(emulator: Emulator) -> None:
    keys = Keys([list(range(300))], [np.int64])
    assert _grouped(emulator, keys, 256, 128) is None
    assert _grouped(emulator, keys, 1024, 300) == _expected(keys.rows)


KINDS = [WordKind.SUM, WordKind.SUM_DOUBLES, WordKind.LEAST, WordKind.GREATEST]


def _merged(emulator: Emulator, columns: list[NDArray[Any]], codes: Any, cells: NDArray[np.int64]) -> None:
    merge = emulator.kernel("pipeline/group_cells", "cells_merge", ())
    packed = [
        pack_words(KINDS, [int(column.ctypes.data) for column in columns]),
        bytes(8) if codes is None else address(codes),
        len(columns[0]).to_bytes(8, "little"),
        struct.pack("<Qqq", cells.ctypes.data, cells.shape[1], 1),
    ]
    assert [len(one) for one in packed] == list(merge.sizes)
    merge.run(packed, 2, 64)


def test_states_are_merged_by_what_their_words_are(emulator: Emulator) -> None:
    random = np.random.default_rng(3)
    whole = random.integers(-(2**40), 2**40, 200)
    doubles = random.normal(size=200)
    codes = random.integers(0, 3, 200).astype(np.int32)
    cells = np.zeros((4, 3), np.int64)
    clear = emulator.kernel("pipeline/group_cells", "cells_clear", ())
    clear.run(
        [
            struct.pack("<Qqq", cells.ctypes.data, 3, 1),
            pack_words(KINDS, ()),
            (3).to_bytes(8, "little"),
        ],
        1,
        64,
    )
    columns = [whole, doubles.view(np.int64), whole, whole]
    for begin, end in ((0, 50), (50, 200)):
        part = [np.ascontiguousarray(column[begin:end]) for column in columns]
        _merged(emulator, part, np.ascontiguousarray(codes[begin:end]), cells)
    for group in range(3):
        own = codes == group
        assert cells[0, group] == whole[own].sum()
        assert math.isclose(float(cells.view(np.float64)[1, group]), doubles[own].sum())
        assert (cells[2, group], cells[3, group]) == (whole[own].min(), whole[own].max())


def test_sums_of_many_states_do_not_outgrow_their_words(emulator: Emulator) -> None:
    """Low halves of 2**31 rows fill their word; those of eight such states go on in the high one."""
    kinds = [WordKind.LOW_SUM, WordKind.SUM]
    low, high = (2**31 - 1) * (2**32 - 1), -5
    cells = np.zeros((2, 1), np.int64)
    columns = [np.full(8, low, np.int64), np.full(8, high, np.int64)]
    merge = emulator.kernel("pipeline/group_cells", "cells_merge", ())
    packed = [
        pack_words(kinds, [int(column.ctypes.data) for column in columns]),
        bytes(8),
        (8).to_bytes(8, "little"),
        struct.pack("<Qqq", cells.ctypes.data, 1, 1),
    ]
    merge.run(packed, 1, 64)
    assert 0 <= cells[0, 0] < 2**40
    assert int(cells[0, 0]) + (int(cells[1, 0]) << 32) == 8 * (low + (high << 32))


def _finished(
    emulator: Emulator, finish: int, words: list[list[int]], dtype: Any, *, unit: float = 1.0
) -> list[Any]:
    """Values of groups, None where no row counted: words are value, high halves and counts."""
    high = finish in (1, 2)
    columns = [np.array(column, np.int64) for column in words]
    groups = len(words[0])
    values = np.zeros(groups + 1, dtype)
    bits, nulls = np.zeros(-(-groups // 64) * 2, np.uint32), np.zeros(1, np.uint32)
    packed = struct.pack(
        "<QQQQQdII",
        columns[0].ctypes.data,
        columns[1].ctypes.data if high else 0,
        columns[2].ctypes.data,
        values.ctypes.data,
        bits.ctypes.data,
        unit,
        finish,
        values.dtype.itemsize,
    )
    kernel = emulator.kernel("pipeline/group_cells", "cells_finish", ())
    kernel.run([packed, groups.to_bytes(8, "little"), address(nulls)], 1, 64)
    valid = [bool(bits[i // 32] >> i % 32 & 1) for i in range(groups)]
    assert valid == [count > 0 for count in words[2]]
    assert nulls[0] == valid.count(False)
    return [value if is_valid else None for value, is_valid in zip(values[:groups], valid, strict=True)]


def test_sums_become_decimals_and_means(emulator: Emulator) -> None:
    """Of numbers of both signs, as halves of many numbers have them."""
    totals = [0, 1, -1, 10**18, -(10**18), 12345678901234567890123, -(2**90)]
    words = [[t % 2**32 + 5 * 2**32 for t in totals], [t // 2**32 - 5 for t in totals], [3, 1, 0, 2, 1, 1, 1]]
    found = _finished(emulator, 1, words, "V16")
    numbers = [None if v is None else int.from_bytes(bytes(v), "little", signed=True) for v in found]
    assert numbers == [None if count == 0 else t for t, count in zip(totals, words[2], strict=True)]
    means = _finished(emulator, 2, words, np.float64, unit=100.0)
    for mean, total, count in zip(means, totals, words[2], strict=True):
        assert (mean is None) == (count == 0)
        assert mean is None or math.isclose(mean, total / (count * 100), rel_tol=1e-15)


def test_extremes_become_values_of_their_width(emulator: Emulator) -> None:
    words = [[-5, 7, 2**31 - 1], [0, 0, 0], [1, 0, 4]]
    assert _finished(emulator, 0, words, np.int32) == [-5, None, 2**31 - 1]
    wide = _finished(emulator, 0, words, "V16")
    assert [None if v is None else int.from_bytes(bytes(v), "little", signed=True) for v in wide] == [
        -5,
        None,
        2**31 - 1,
    ]


@pytest.mark.parametrize("number", [0.0, -0.0, 1.5, -1e300, math.inf, -math.inf, math.nan])
def test_extremes_of_doubles_come_back(emulator: Emulator, number: float) -> None:
    (bits,) = struct.unpack("<q", struct.pack("<d", number))
    ordered = bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF
    (found,) = _finished(emulator, 5, [[ordered], [0], [1]], np.float64)
    assert math.copysign(1, found) == math.copysign(1, number)
    assert found == number or math.isnan(number) == math.isnan(found) is True
