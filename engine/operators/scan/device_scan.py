"""The seam by which a device brings its own way to read the chunks of a stored table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeGuard, runtime_checkable

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.scan.chunk_selection import SelectionPlan
from bamquery.engine.operators.scan.column_reads import ColumnReads
from bamquery.engine.operators.scan.open_fragments import FragmentReaders
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.statistics.predicate import RangePredicate


@dataclass(frozen=True)
class ScanWork(Generic[Frame]):
    """One scan, as a device that reads its chunks itself gets it.

    Attributes:
        plan: columns to give out and steps to pass before; there is a column or a step.
        fragments: the table's, in row order.
        ranges: what zone maps prune by.
        columns: all that will be read, by name.
        context: device, settings, memory, cancellation.
        profile: to be filled as `bamquery.engine.operators.scan.column_reads` does.
        readers: the files as block readers, for columns that the device does not read itself: `expect` and
            `release` each chunk.
        reads: reads such columns, and counts.
        check: raises where the scan should stop; to be called before each read and while waiting.
        is_taken_whole: whether whoever takes the rows takes all of them, so that no chunk need be small for
            the sake of who waits for the first ones.
        facts: what is worked out about the fragments and lasts as they do, by a name that its maker gives.
    """

    plan: SelectionPlan
    fragments: Sequence[Fragment]
    ranges: Sequence[RangePredicate]
    columns: Sequence[str]
    context: ExecutionContext[Frame]
    profile: ScanProfile
    readers: FragmentReaders[Frame]
    reads: ColumnReads[Frame]
    check: Callable[[], None]
    is_taken_whole: bool = False
    facts: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class ScanningDevice(Protocol[Frame]):
    """A device that reads chunks itself."""

    def scan(self, work: ScanWork[Frame]) -> Generator[Frame, None, None]:
        """One frame a chunk that has rows which pass, in row order.

        Closing the generator stops the work. Raises what operators raise.
        """
        ...


def scans_itself(device: Device[Frame]) -> TypeGuard[ScanningDevice[Frame]]:
    """Whether it is a `ScanningDevice`."""
    return _scans_itself(type(device))


@functools.lru_cache(maxsize=16)
def _scans_itself(kind: type[Any]) -> bool:
    return issubclass(kind, ScanningDevice)
