"""What a GPU's kernels did through NVMe queue pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bamquery.engine.human_units import ratio


@dataclass
class DriveCounters:
    """What went through the queue pairs of one drive, which may be a software controller."""

    commands: int = 0
    """Completed well."""
    bytes: int = 0
    """That they read."""
    errors: int = 0
    """Commands that failed, or got no answer in time."""
    in_flight_seconds: float = 0.0
    """From issue until a warp's commands had all completed, all commands added up."""


@dataclass
class QueueProfile:
    """What a GPU's kernels did through queue pairs in one scan. Written under its `ScanProfile`'s lock."""

    pairs: int = 0
    """Queue pairs for scattered blocks, each a thread block's while it runs."""
    depth: int = 0
    """Places of each of their rings."""
    drives: list[DriveCounters] = field(default_factory=list)
    """In the order of their numbers; a table on one drive has one."""
    kernel_seconds: float = 0.0
    """Time of the kernels that issued commands, by the GPU's clock, added up."""
    waited_seconds: float = 0.0
    """That warps waited for completions, all warps added up."""
    warp_seconds: float = 0.0
    """That these warps ran."""
    controller_seconds: float = 0.0
    """CPU time of the controller's threads while the scan ran, for other queries too."""
    wall_seconds: float = 0.0
    """How long the scan ran."""

    def drive(self, number: int) -> DriveCounters:
        """Of the drive with that number, from 0 on."""
        while len(self.drives) <= number:
            self.drives.append(DriveCounters())
        return self.drives[number]

    @property
    def commands(self) -> int:
        """Of all drives, completed well."""
        return sum(drive.commands for drive in self.drives)

    @property
    def bytes(self) -> int:
        """Of all drives."""
        return sum(drive.bytes for drive in self.drives)

    @property
    def errors(self) -> int:
        """Of all drives."""
        return sum(drive.errors for drive in self.drives)

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
        return ratio(sum(drive.in_flight_seconds for drive in self.drives), self.kernel_seconds)

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
            "errors": self.errors,
            "kernel_seconds": self.kernel_seconds,
            "iops": self.iops,
            "bytes_per_second": self.bytes_per_second,
            "mean_depth": self.mean_depth,
            "waited_seconds": self.waited_seconds,
            "waited_share": self.waited_share,
            "controller_seconds": self.controller_seconds,
            "controller_cores": self.controller_cores,
            "drives": [
                {
                    "commands": drive.commands,
                    "bytes": drive.bytes,
                    "errors": drive.errors,
                    "mean_depth": ratio(drive.in_flight_seconds, self.kernel_seconds),
                }
                for drive in self.drives
            ],
        }
