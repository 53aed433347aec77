"""Sets of whole numbers on a GPU, as kernels that select rows look them up: a bit a number."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.keys.late_keys import MOST_BITS, LateKeys
from bamquery.engine.cuda.session import CudaSession
from bamquery.plan.expressions import Members

_KEPT_SETS: Final = 8
"""Of conditions that are asked again for each chunk."""
_KEPT_SET_BYTES: Final = 32 << 20


@dataclass(frozen=True)
class Sets:
    """Sets of numbers on the GPU, as kernels take them, and what must live as long as they are made."""

    packed: bytes
    memory: tuple[rmm.DeviceBuffer, ...]
    numbers: tuple[Any, ...]


_sets: dict[tuple[int, ...], tuple[tuple[weakref.ref[Members], ...], Sets | None]] = {}
"""Sets that a scan's chunks are looked at for, one after the other; they go with their values."""


def kept_sets(session: CudaSession, members: Sequence[Members]) -> Sets | None:
    """As `_make_sets`, made once for all chunks of a scan."""
    key = (id(session), *map(id, members))
    known = _sets.get(key)
    if known is not None and all(one() is own for one, own in zip(known[0], members, strict=True)):
        return known[1]
    made = _make_sets(session, members)
    if members and (made is None or sum(one.size for one in made.memory) <= _KEPT_SET_BYTES):
        if len(_sets) >= _KEPT_SETS:  # lists of statements live as long as their plans
            _sets.pop(next(iter(_sets)), None)
        weak = tuple(weakref.ref(one, lambda _: _sets.pop(key, None)) for one in members)
        _sets[key] = weak, made
    return made


def _make_sets(session: CudaSession, members: Sequence[Members]) -> Sets | None:
    """None where one would take too many bits."""
    packed, memory, held = b"", [], []
    cuda, stream, launcher = session.gpu.cuda, session.driver_stream, session.launcher
    for one in members:
        numbers = one.values if isinstance(one.values, LateKeys) else _numbers(one.values)
        first, count = _span(numbers)
        if count > MOST_BITS:
            return None
        bits = session.allocate(max(-(-count // 64), 1) * 8, "a set of values")
        cuda("clear a set", "cuMemsetD8Async", bits.ptr, 0, bits.size, stream)
        memory.append(bits)
        packed += struct.pack("<QQq", bits.ptr, first % 2**64, count)
        held.append(numbers)
        if not count:
            continue
        if isinstance(numbers, LateKeys):
            address = numbers.address
        else:
            copied = session.allocate_entered(numbers.nbytes, "a set of values")
            cuda("copy a set", "cuMemcpyHtoDAsync", copied.ptr, numbers.ctypes.data, numbers.nbytes, stream)
            memory.append(copied)
            address = copied.ptr
        launcher.start(
            launcher.kernel("pipeline/member_bits", "set_members"),
            *(address, len(numbers), first % 2**64, bits.ptr),
            grid=launcher.grid(len(numbers)),
            stream=stream,
        )
    return Sets(packed, tuple(memory), tuple(held))


def _span(numbers: LateKeys | NDArray[np.int64]) -> tuple[int, int]:
    """The least of some numbers, and how many there are from it to the greatest."""
    if not len(numbers):
        return 0, 0
    if isinstance(numbers, LateKeys):
        least, greatest = numbers.bounds
    else:
        least, greatest = int(numbers.min()), int(numbers.max())
    return least, greatest - least + 1


def _numbers(values: Any) -> NDArray[np.int64]:
    kind = values.type
    if not pa.types.is_integer(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    found: NDArray[np.int64] = values.to_numpy().astype(np.int64, copy=False)
    return found
