"""What a GPU's kernels did through NVMe queue pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bamquery.engine.human_units import ratio


@dataclass
class QueueProfile:
    """What a GPU's kernels did through queue pairs in one scan. Written under its `ScanProfile`'s lock."""

    pairs: int = 0
    """Queue pairs for scattered blocks, each a thread block's while it runs."""
    depth: int = 0
    """Places of each of their rings."""
    commands: int = 0
    """Completed well."""
    bytes: int = 0
    """That they read."""
    kernel_seconds: float = 0.0
    """Time of the kernels that issued them, by the GPU's clock, added up."""
    in_flight_seconds: float = 0.0
    """From issue until a warp's commands had all completed, all commands added up."""
    waited_seconds: float = 0.0
    """That warps waited for completions, all warps added up."""
    warp_seconds: float = 0.0
    """That these warps ran."""
    controller_seconds: float = 0.0
    """CPU time of the controller's threads while the scan ran, for other queries too."""
    wall_seconds: float = 0.0
    """How long the scan ran."""

    @property
    def iops(self) -> float | None:
        """Commands a second while kernels fetched."""
        return ratio(self.commands, self.kernel_seconds)

    @property
    def bytes_per_second(self) -> float | None:
        """Bytes a second while kernels fetched."""
        return ratio(self.bytes, self.kernel_seconds)

    @property
    def mean_depth(self) -> float | None:
        """Commands in flight, on average, while kernels fetched (Little's law)."""
        return ratio(self.in_flight_seconds, self.kernel_seconds)

    @property
    def waited_share(self) -> float | None:
        """Share of the fetching warps' time that they waited for I/O."""
        return ratio(self.waited_seconds, self.warp_seconds)

    @property
    def controller_cores(self) -> float | None:
        """CPU cores that the controller's threads took."""
        return ratio(self.controller_seconds, self.wall_seconds)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "pairs": self.pairs,
            "depth": self.depth,
            "commands": self.commands,
            "bytes": self.bytes,
            "kernel_seconds": self.kernel_seconds,
            "iops": self.iops,
            "bytes_per_second": self.bytes_per_second,
            "mean_depth": self.mean_depth,
            "waited_seconds": self.waited_seconds,
            "waited_share": self.waited_share,
            "controller_seconds": self.controller_seconds,
            "controller_cores": self.controller_cores,
        }
