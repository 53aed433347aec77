"""Columns of small tables, read whole by the processor and copied together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bamquery.engine.cuda.cache.late_columns import Held
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.device import Device
from bamquery.engine.operators.scan.column_reads import count_strategy
from bamquery.engine.operators.scan.device_scan import ScanWork
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.read_planner.strategy import Strategy
from bamquery.storage.readers.block_reader import ReadCounters


def read_by_processor(
    device: Device[CudaFrame],
    work: ScanWork[CudaFrame],
    names: Sequence[str],
    as_held: Callable[[Held, pa.Array[Any]], Held],
) -> Mapping[str, Held]:
    """The columns' rows, by name, each as `as_held` makes it of what came and of the array that it is.

    Nothing is planned: that would take longer than to read them. The host waits for the copy once.

    Raises:
        StorageError: a file cannot be read, or is not as it was written.
        CancelledError, GpuError, MemoryLimitError: as scans do.
    """
    parts: dict[str, list[pa.Array[Any]]] = {name: [] for name in names}
    for fragment in work.fragments:
        if not fragment.rows:
            continue
        with work.readers.reader_of(fragment) as reader:
            for name in names:
                work.check()
                parts[name].append(_read(work, reader, name, fragment.vector_count))
    arrays = [pa.concat_arrays(parts[name]) for name in names]
    frame = device.from_columns(arrays)
    return {
        name: as_held(column, array) for name, column, array in zip(names, frame.held, arrays, strict=True)
    }


def _read(work: ScanWork[CudaFrame], reader: FragmentReader, name: str, vectors: int) -> pa.Array[Any]:
    counters, profile = ReadCounters(), work.profile
    with profile.measure_read(name):
        found = reader.stream(name, np.arange(vectors, dtype=np.int64), counters)
    with profile.lock:
        figures = profile.columns[name]
        count_strategy(figures, Strategy.STREAM)
        figures.vectors_total += vectors
        figures.vectors_read += vectors
        figures.counters += counters
    return found
