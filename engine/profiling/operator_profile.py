"""What an operator did. It fills its own profile while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bamquery.engine.profiling.kernel_use import KernelUse


@dataclass
class OperatorProfile:
    """One operator: `rows` it gave out, `seconds` spent in it without its children.

    `details` are shown beside the name and must be JSON-able: keys, aggregates, peak memory in bytes, what
    `kernels` did.
    """

    name: str
    details: dict[str, Any] = field(default_factory=dict)
    rows: int = 0
    seconds: float = 0.0
    children: tuple[OperatorProfile, ...] = ()
    kernels: KernelUse | None = None

    def walk(self) -> Iterator[OperatorProfile]:
        """This one and all below, parents first."""
        waiting = [self]
        while waiting:
            found = waiting.pop()
            yield found
            waiting.extend(reversed(found.children))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, children included."""
        return {
            "name": self.name,
            "rows": self.rows,
            "seconds": self.seconds,
            "details": dict(self.details),
            "children": [child.to_dict() for child in self.children],
        }


@dataclass
class SeriesProfile(OperatorProfile):
    """The values of range() and generate_series()."""

    rows_total: int = 0
    rows_scanned: int = 0
    """Values of the chunks that whoever wants rows is done with."""
