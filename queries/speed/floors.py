"""The least time that a query's reads can take: its bytes over the measured rate of where they come from."""

from __future__ import annotations

from dataclasses import dataclass

from bamquery.engine.profiling.query_profile import QueryProfile


@dataclass(frozen=True)
class Rates:
    """Bytes a second, measured.

    Attributes:
        host: what the processor reads of its memory, with as many threads as queries have.
        bus: from pinned host memory into the GPU's, by its copy engine; None without a GPU.
        gpu: that the GPU reads and writes of its own memory as it copies there; None without a GPU.
    """

    host: float
    bus: float | None = None
    gpu: float | None = None


@dataclass(frozen=True)
class Floor:
    """What one answer's reads take at least.

    Attributes:
        read: bytes from files, as they are stored: over the bus, or from host memory on a processor.
        resident: bytes of decoded columns in the GPU's memory, of the rows that were looked at.
        seconds: both at the measured rates, one after the other.
    """

    read: int
    resident: int
    seconds: float


def floor_of(profile: QueryProfile, rates: Rates) -> Floor:
    """Of one run, by its profile."""
    columns = [column for scan in profile.scans for column in scan.columns.values()]
    read = sum(column.counters.bytes for column in columns)
    resident = sum(column.bytes_needed for column in columns if column.cached)
    on_gpu = rates.bus is not None and profile.device.startswith("cuda")
    seconds = read / (rates.bus if on_gpu and rates.bus is not None else rates.host)
    if resident:
        assert rates.gpu is not None, "a GPU keeps columns"
        seconds += resident / rates.gpu
    return Floor(read, resident, seconds)
