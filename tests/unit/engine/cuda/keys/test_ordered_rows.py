"""Groups of rows that come in the order of their key: runs, without a table of keys."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest


def groups(device: Any, keys: list[int], kind: Any) -> tuple[list[int], list[int], int]:
    from bamquery.engine.cuda.keys.hashed_rows import hash_groups

    frame = device.from_arrow(pa.record_batch([pa.array(keys, kind)], ["k"]))
    found = hash_groups(device.kernels, list(frame.columns), len(keys))
    return found.codes.values(), found.firsts.values(), found.groups


def expected(keys: list[int]) -> tuple[list[int], list[int], int]:
    firsts = {key: place for place, key in reversed(list(enumerate(keys)))}
    order = sorted(firsts, key=firsts.__getitem__)
    numbers = {key: number for number, key in enumerate(order)}
    return [numbers[key] for key in keys], [firsts[key] for key in order], len(order)


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
@pytest.mark.parametrize("run", [1, 3, 40, 2000])
def test_runs(device: Any, monkeypatch: pytest.MonkeyPatch, rows: int, kind: Any, run: int) -> None:
    from bamquery.engine.cuda.keys import hashed_rows

    monkeypatch.setattr(hashed_rows, "_MANY_ROWS", 1)
    monkeypatch.setattr(hashed_rows, "_FEW", None)  # no table is made
    keys = [5 * (row // run) - 700 for row in range(rows)]
    assert groups(device, keys, kind) == expected(keys)


@pytest.mark.parametrize("place", [1, 31, 32, 1024, 1500, 2999])
def test_one_row_out_of_order(device: Any, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    from bamquery.engine.cuda.keys import hashed_rows

    monkeypatch.setattr(hashed_rows, "_MANY_ROWS", 1)
    keys = [row // 3 for row in range(3000)]
    keys[place] = -9
    assert groups(device, keys, pa.int64()) == expected(keys)
