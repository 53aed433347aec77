"""What a query did: all its operators together. docs/profile.md says what each figure means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bamquery.engine.human_units import ratio
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.profiling.scan_profile import FileScanProfile, ScanProfile
from bamquery.storage.readers.block_reader import ReadCounters

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class IoProfile:
    """A query's I/O: all its scans of stored tables together."""

    bytes_needed: int
    bytes_read: int
    commands: int
    blocks: int
    seconds: float
    """Time with at least one read in progress, each scan's added up."""
    readers: tuple[str, ...]
    """Kinds of block reader used, and their paths: `mapped`, `direct (io_uring)`, `direct (preadv: why)`."""
    uncounted: tuple[str, ...]
    """Files that were scanned without being counted."""

    @property
    def amplification(self) -> float | None:
        """Bytes read / bytes needed; None where nothing was needed."""
        return ratio(self.bytes_read, self.bytes_needed)

    @property
    def iops(self) -> float | None:
        """Commands a second while reading; None where nothing was read."""
        return ratio(self.commands, self.seconds)

    @property
    def bytes_per_second(self) -> float | None:
        """Bytes a second while reading; None where nothing was read."""
        return ratio(self.bytes_read, self.seconds)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "bytes_needed": self.bytes_needed,
            "bytes_read": self.bytes_read,
            "amplification": self.amplification,
            "commands": self.commands,
            "blocks": self.blocks,
            "seconds": self.seconds,
            "iops": self.iops,
            "bytes_per_second": self.bytes_per_second,
            "readers": list(self.readers),
            "uncounted": list(self.uncounted),
        }


@dataclass
class QueryProfile:
    """One run of a query: its operators, device and wall-clock seconds."""

    device: str
    root: OperatorProfile
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    """What did not run as asked, and why: a device that `auto` passed over, a run that was cut short; and
    functions that a CPU calls Python for."""
    peak_memory: int = 0
    """Most bytes that operators held at once between frames."""

    @property
    def rows(self) -> int:
        """Rows of the answer, as far as it was taken."""
        return self.root.rows

    @property
    def spilled(self) -> int:
        """Bytes of rows and states that operators kept in files, for `memory_limit` had no room."""
        return sum(p.details.get("spilled", 0) for p in self.root.walk())

    @property
    def scans(self) -> tuple[ScanProfile, ...]:
        """The scans of stored tables."""
        return tuple(p for p in self.root.walk() if isinstance(p, ScanProfile))

    @property
    def io(self) -> IoProfile:
        """All scans together."""
        counters = ReadCounters()
        for scan in self.scans:
            counters += scan.counters
        return IoProfile(
            bytes_needed=sum(scan.bytes_needed for scan in self.scans),
            bytes_read=counters.bytes,
            commands=counters.commands,
            blocks=counters.blocks,
            seconds=sum(scan.clock.seconds for scan in self.scans),
            readers=tuple(dict.fromkeys(scan.reader_path for scan in self.scans)),
            uncounted=tuple(p.source for p in self.root.walk() if isinstance(p, FileScanProfile)),
        )

    def plot(self) -> Figure:
        """Bytes by column (pruned, streamed, fetched) and time by operator, as a figure of matplotlib.

        Raises:
            BamQueryError: matplotlib is not installed.
        """
        from bamquery.engine.explain.charts import plot_profile  # noqa: PLC0415 (which needs this module)

        return plot_profile(self)

    def __str__(self) -> str:
        """As EXPLAIN ANALYZE shows it."""
        from bamquery.engine.explain.text_tree import explain_profile  # noqa: PLC0415 (which needs this module)

        return explain_profile(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        from bamquery.engine.explain.html_tree import profile_html  # noqa: PLC0415 (which needs this module)

        return profile_html(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able: what `bamquery taxi run` and others record."""
        return {
            "device": self.device,
            "seconds": self.seconds,
            "rows": self.rows,
            "peak_memory": self.peak_memory,
            "spilled": self.spilled,
            "io": self.io.to_dict(),
            "notes": list(self.notes) + [note for scan in self.scans for note in scan.notes],
            "operators": self.root.to_dict(),
        }
