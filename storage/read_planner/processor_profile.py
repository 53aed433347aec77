"""How fast this machine's processor checks and decodes, measured once."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import numpy as np

from bamquery import _native
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.read_planner.cost_model import SINGLE_ROWS, ProcessorRates
from bamquery.storage.read_planner.profile_cache import keep_measured, load_measured

ASSUMED_PROCESSOR: Final = ProcessorRates(
    checksum=2e10,
    decode=MappingProxyType(
        {
            "packed": 1.3e9,
            SINGLE_ROWS.format("packed"): 4e7,
            "fsst": 4e7,
            SINGLE_ROWS.format("fsst"): 1e7,
        }
    ),
)
"""One core of a server: CRC-32C by its instructions; packed values from memory, eight at a time, or singly,
each of which is first placed, then gathered, then decoded. Strings of some 30 bytes."""
_BYTES: Final = 4 << 20
"""More than a core's own caches hold."""
_SECONDS: Final = 0.02
_NAMES: Final = ("checksum",)

_lock = threading.Lock()
_known: list[ProcessorRates] = []


def processor_rates() -> ProcessorRates:
    """Those of one core of this machine; measuring takes a few hundredths of a second, once."""
    with _lock:
        if not _known:
            key = f"processor-{platform.node()}-{platform.machine()}"
            found = load_measured(key, _NAMES)
            if found is None:
                found = {"checksum": measure_checksum(time.perf_counter)}
                keep_measured(key, found)
            _known.append(ProcessorRates(found["checksum"], ASSUMED_PROCESSOR.decode))
        return _known[0]


def measure_checksum(clock: Callable[[], float]) -> float:
    """Bytes a second of CRC-32C over vectors of 64-bit values."""
    data = np.zeros(_BYTES, np.uint8)
    _native.strided_crcs(data, 8 * VECTOR_ROWS)
    start, turns, elapsed = clock(), 0, 0.0
    while elapsed < _SECONDS:
        _native.strided_crcs(data, 8 * VECTOR_ROWS)
        turns += 1
        elapsed = clock() - start
    return turns * _BYTES / elapsed
