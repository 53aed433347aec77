"""What windows compute with on a device, held against numpy: all of `engine/windows/vectors.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from bamquery.engine.cpu.vectors import Vectors as CpuVectors
from bamquery.engine.device import Device
from bamquery.engine.windows.vectors import V, Vectors
from bamquery.plan.nodes import Field


def check_vectors(device: Device[Any], sizes: Sequence[int] = (1, 2, 31, 32, 33, 1000)) -> None:
    """The cuda device's."""
    from bamquery.engine.cuda.frames import make_frame
    from bamquery.engine.cuda.vectors import Vectors as CudaVectors

    for rows in sizes:
        ours, theirs = _results(CudaVectors(device.kernels), rows), _results(CpuVectors(), rows)
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            kind = pa.array(other.values[:0]).type
            (given,) = device.to_arrow(make_frame([mine.column], len(mine)), [Field("x", kind)]).columns
            assert given.to_pylist() == other.values.tolist(), (rows, number)


def _results(vectors: Vectors[V], rows: int) -> Iterator[V]:
    place = vectors.positions(rows)
    a, b = place * 7919 % 101, place * 31 % 17 + 1
    odd = (a % 2).equals(1)
    yield from (a + b, a - b, a * b, a // b, a % b, -a, a + 3, a - 3, a * 3, a // 3, a % 3, a.ratio(b))
    yield from (a.minimum(b), a.minimum(9), a.maximum(b), a.maximum(9), a.clip(5, 50), a.clip(b, b + 20))
    masks = [a < b, a <= b, a > b, a >= b, a.equals(b), a < 9, a <= 9, a > 9, a >= 9, a.equals(9)]
    masks += [odd & (a < b), odd | (a < b), ~odd, a.changes(), (a // 9).changes()]
    for mask in masks:
        assert len(mask) == rows
        yield from (mask.numbers(), mask.totals(), mask.places(), vectors.full(int(mask.any()), 1))
        yield from (mask.choose(a, b), mask.choose(a, 4))
    yield from (a.totals(), a.take(-place + (rows - 1)), a.slice(rows // 3, rows), a.repeats(b), b.repeats(a))
    yield from (vectors.full(5, rows), vectors.concatenate([a, b, a.slice(0, 1)]))
    yield from (vectors.interleave([a]), vectors.interleave([a, b]), vectors.interleave([a, b, place]))
