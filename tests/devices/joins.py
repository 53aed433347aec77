"""Joins on a device, held against pairs found one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from bamquery.engine.device import Device
from tests.conformance.harness import random_column
from tests.devices.frames import assert_equal, batch_of, fields_of
from tests.strategies import ALL_TYPES, CHUNK_SIZES

_DENSE, _SPARSE = [0, 1, 2, 3, 7], [0, 1, -(2**62), 2**62, 10**12]


def check_join_keys(device: Device[Any], sizes: Sequence[int] = CHUNK_SIZES) -> None:
    """Keys of every type, alone and together, with nulls that are equal and that are not."""
    plain = [kind for kind in ALL_TYPES if not pa.types.is_dictionary(kind)]
    for seed, kind in enumerate(plain):
        for nulls_equal in (False, True):
            probe = _keys([random_column(kind, 70, seed)])
            held = _keys([random_column(kind, 50, seed)])
            _check(device, probe, held, [nulls_equal])
    for values in (_DENSE, _SPARSE):
        for rows in sizes:
            one = [random_column(pa.int64(), rows, s, values) for s in (1, 2)]
            two = [random_column(pa.int64(), 33, s, values) for s in (3, 4)]
            for nulls_equal in ([False, False], [True, False], [True, True]):
                _check(device, _keys(one), _keys(two), nulls_equal)
                _check(device, _keys(two), _keys(one), nulls_equal)
            _check(device, _keys(one[:1]), _keys(two[:1]), [False])
            _check(device, _keys(two[:1]), _keys(one[:1]), [False])


def check_take_or_null(device: Device[Any], sizes: Sequence[int] = CHUNK_SIZES) -> None:
    """Rows at positions, and nulls where there is none: of every type, of no rows and of no columns."""
    for rows in sizes:
        batch = batch_of(rows)
        places = np.array([-1, *range(rows)[::2], -1, *range(rows)[:1]], np.int64)
        expected = batch.take(pa.array([None if place < 0 else place for place in places], pa.int64()))
        frame = device.take_or_null(device.from_arrow(batch), places)
        assert_equal(device.to_arrow(frame, fields_of(batch)), expected)
        none = device.take_or_null(device.select(device.from_arrow(batch), []), places)
        assert device.row_count(none) == len(places)


def check_partition(device: Device[Any], rows: int = 300) -> None:
    """Every row comes once, and rows of one key together; other levels split otherwise."""
    for seed, kind in enumerate(kind for kind in ALL_TYPES if not pa.types.is_dictionary(kind)):
        key = random_column(kind, rows, seed)
        batch = pa.RecordBatch.from_arrays([pa.array(range(rows), pa.int64()), key], ["n", "k"])
        frame = device.from_arrow(batch)
        places = []
        for level in (0, 5):
            parts = device.partition(frame, device.select(frame, [1]), 8, level)
            assert len(parts) == 8
            given = [device.to_arrow(part, fields_of(batch)) for part in parts]
            assert sorted(n for part in given for n in part.column(0).to_pylist()) == list(range(rows))
            of_key: dict[Any, set[int]] = {}
            for place, part in enumerate(given):
                for (value,) in _rows(_keys([part.column(1)])):
                    of_key.setdefault(value, set()).add(place)
            assert all(len(found) == 1 for found in of_key.values()), kind
            places.append({value: min(found) for value, found in of_key.items()})
        assert places[0] != places[1] or len(places[0]) < 4, kind
    none = device.from_arrow(batch.slice(0, 0))
    assert sum(map(device.row_count, device.partition(none, device.select(none, [1]), 4, 0))) == 0


def _keys(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), [f"k{i}" for i in range(len(columns))])


def _check(
    device: Device[Any], probe: pa.RecordBatch, held: pa.RecordBatch, nulls_equal: Sequence[bool]
) -> None:
    table = device.join_table(device.from_arrow(held), nulls_equal)
    assert table.nbytes >= 0
    portions = list(table.matches(device.from_arrow(probe)))
    stops = [0, *(stop for stop, _, _ in portions)]
    assert stops[-1] == probe.num_rows
    for (start, stop), (_, positions, _) in zip(pairwise(stops), portions, strict=True):
        assert all(start <= p < stop for p in positions)
        assert (np.diff(positions) >= 0).all()
    ours = sorted((int(p), int(f)) for _, ps, fs in portions for p, f in zip(ps, fs, strict=True))
    assert ours == _pairs(probe, held, nulls_equal), f"{probe.schema.types} {nulls_equal}"


def _pairs(probe: pa.RecordBatch, held: pa.RecordBatch, nulls_equal: Sequence[bool]) -> list[tuple[int, int]]:
    places: dict[Any, list[int]] = {}
    for number, key in enumerate(_rows(held)):
        places.setdefault(key, []).append(number)
    return [
        (number, other)
        for number, key in enumerate(_rows(probe))
        if all(part is not None or equal for part, equal in zip(key, nulls_equal, strict=True))
        for other in places.get(key, [])
    ]


def _rows(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return list(zip(*([_plain(v) for v in column] for column in batch.columns), strict=True))


def _plain(value: pa.Scalar) -> Any:
    if not value.is_valid:
        return None
    if pa.types.is_floating(value.type):
        number = value.as_py()
        return "NaN" if math.isnan(number) else number + 0.0
    return value.value if pa.types.is_temporal(value.type) else value.as_py()
