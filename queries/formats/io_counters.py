"""What a process has read so far."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PATH: Final = Path("/proc/self/io")


@dataclass(frozen=True)
class IoCounters:
    """Bytes as Linux counts them for a process and its threads.

    Attributes:
        requested: by system calls that read; what mappings give is not in it.
        from_disk: that had to come from a drive, whichever way they were asked for; read ahead included.
    """

    requested: int
    from_disk: int

    @staticmethod
    def read() -> IoCounters:
        """As they are now."""
        lines = _PATH.read_text(encoding="ascii").splitlines()
        figures = dict(line.split(": ") for line in lines)
        return IoCounters(int(figures["rchar"]), int(figures["read_bytes"]))

    def __sub__(self, earlier: IoCounters) -> IoCounters:
        return IoCounters(self.requested - earlier.requested, self.from_disk - earlier.from_disk)
