"""How fast a drive is by a few ways, every block compared with its first read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from bamquery import _native
from bamquery.driver.bench.live import iops_text
from bamquery.driver.bench.measure import measure
from bamquery.driver.bench.sizes import format_size
from bamquery.driver.bench.workload import Figures, Progress
from bamquery.driver.controller import Controller, NamespaceShape

_EXTENT_BYTES: Final = 1 << 30
"""How much is read at most: enough that a drive's own cache does not hold it all, little enough to know."""
_DEADLINE: Final = 10.0


@dataclass(frozen=True)
class Load:
    """Random reads.

    Attributes:
        pairs: queue pairs, each with a client.
        in_flight: commands of each.
        transfer_bytes: of a command.
    """

    pairs: int
    in_flight: int
    transfer_bytes: int

    def __str__(self) -> str:
        return f"{format_size(self.transfer_bytes)}, {self.pairs} × {self.in_flight}"


LOADS: Final[Sequence[Load]] = (
    Load(1, 1, 4096),
    Load(1, 63, 4096),
    Load(4, 255, 4096),
    Load(1, 31, 128 << 10),
)
"""Landing buffers take less than 4 MiB, as those of `two_ways`."""


def measure_load(
    controller: Controller, shape: NamespaceShape, load: Load, seconds: float, progress: Progress
) -> Figures:
    """Figures of random reads from the beginning of a namespace on, which fits a block at least.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
    """
    memory = controller.memory
    block_bytes = min(load.transfer_bytes, memory.slot_bytes)
    job = _native.BlockJob(
        block_bytes=block_bytes,
        blocks=max(min(_EXTENT_BYTES, shape.bytes) // block_bytes, 1),
        clients=memory.leased_pairs,
        depth=memory.slots,
        pattern="random",
        theta=1.0,
        write_share=0.0,
        seed=1,
        verify=True,
    )
    run = _native.start_controller_bench(
        memory, controller.native, job, nsid=shape.nsid, known_content=False, deadline_seconds=_DEADLINE
    )
    return measure(str(load), run, seconds, progress, verify=True)


def rate_line(figures: Figures) -> str:
    """For people."""
    latency = figures.latency
    times = f"p50 {latency.p50 / 1e3:.0f} µs, p99 {latency.p99 / 1e3:.0f} µs" if latency else "no reads"
    ring = figures.counters.get("doorbells", 0) / figures.operations if figures.operations else 0.0
    speed = f"{iops_text(figures.iops):>11}  {figures.gigabytes_per_second:6.3f} GB/s"
    return f"{figures.path:<14} {speed}  {times}, {ring:.2f} doorbells a command"


def rates_as_dict(figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """For JSON."""
    return [one.to_dict() for one in figures]
