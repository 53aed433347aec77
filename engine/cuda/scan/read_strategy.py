"""How the GPU should read a column for the rows that are alive: stream, fetch vectors or fetch blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from bamquery.storage.encodings.encoding import Footprint
from bamquery.storage.encodings.fixed_width import expected_footprint
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.planner import Strategy, expected_vectors

_CLEARLY: Final = 0.9
"""As for the CPU's planner: closer costs are not different, and the simpler way is taken."""


@dataclass(frozen=True)
class PathRates:
    """What the GPU gets out of a table's files.

    Attributes:
        stream: bytes a second of large requests.
        vectors: bytes a second of scattered vectors.
        blocks: bytes a second of scattered blocks.
        commands: of them a second.
        latency: seconds from the first command to the first answer.
    """

    stream: float
    vectors: float
    blocks: float
    commands: float
    latency: float

    @classmethod
    def for_mapped_files(cls, controller_threads: int) -> PathRates:
        """Files in the page cache: the copy engine, and a software controller (docs/benchmarks/gpu.md).

        Whole vectors are compared with their checksums and rows gathered from them: part of the rate.
        """
        return cls(
            stream=42e9,
            vectors=40e9,
            blocks=min(45e9, 4e9 * controller_threads),
            commands=7e6 * controller_threads,
            latency=30e-6,
        )

    @classmethod
    def for_direct_reads(cls, volume: DeviceProfile) -> PathRates:
        """Files past it: what the volume gave the CPU's reader, which is the drive's doing."""
        return cls(volume.bandwidth, volume.bandwidth, volume.bandwidth, volume.iops, volume.latency)


@dataclass(frozen=True)
class BufferShape:
    """One buffer of a chunk, as far as costs depend on it.

    Attributes:
        vectors: to be read.
        bits: of a row; of strings on average.
        touched: blocks that a row lies in, on average.
    """

    vectors: int
    bits: float
    touched: float = 1.0

    @classmethod
    def for_strings(cls, vectors: int, bytes_of_row: float, block_bytes: int) -> BufferShape:
        """Bytes of strings: one block each, and another for each end of a block within."""
        return cls(vectors, 8 * bytes_of_row, 1 + max(bytes_of_row - 1, 0) / block_bytes)


def choose_strategy(
    buffers: tuple[BufferShape, ...], rows: int, vectors: int, block_bytes: int, rates: PathRates
) -> tuple[Strategy, float]:
    """The cheapest way to read `rows` rows, anywhere in `vectors` vectors, and its seconds."""
    costs = [
        (strategy, _seconds(strategy, buffers, rows, vectors, block_bytes, rates)) for strategy in Strategy
    ]
    best = costs[0]
    for cost in costs[1:]:
        if cost[1] < _CLEARLY * best[1]:
            best = cost
    return best


def _seconds(  # noqa: PLR0917 - as choose_strategy
    strategy: Strategy,
    buffers: tuple[BufferShape, ...],
    rows: int,
    vectors: int,
    block_bytes: int,
    rates: PathRates,
) -> float:
    seconds = rates.latency
    for buffer in buffers:
        share = buffer.vectors / max(vectors, 1)
        size = VECTOR_ROWS * buffer.bits // 8
        whole = Footprint(1, math.ceil(buffer.vectors * size / block_bytes))
        match strategy:
            case Strategy.STREAM:
                seconds += buffer.vectors * size / rates.stream
            case Strategy.FETCH_VECTORS:
                count = expected_vectors(round(rows * share), buffer.vectors)
                seconds += max(count * size / rates.vectors, count / rates.commands)
            case Strategy.FETCH_BLOCKS:
                blocks = expected_footprint(round(rows * share * buffer.touched), whole).blocks
                seconds += max(blocks * block_bytes / rates.blocks, blocks / rates.commands)
    return seconds
