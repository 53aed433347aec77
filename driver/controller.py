"""What serves the queue pairs of a QueueMemory: threads of this process, or a drive."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from bamquery import _native
from bamquery._native import QueueMemory

DEADLINE = 30.0
"""Seconds that calls wait unless they say otherwise."""


@dataclass(frozen=True)
class NamespaceShape:
    """What a controller's clients know of a namespace.

    Attributes:
        nsid: its number.
        block_bytes: of an LBA.
        blocks: how many it has.
        bytes: of data; fewer than the blocks have where a file's last block is not whole.
        writable: otherwise writes are refused.
        volatile_cache: what was written is durable only after a flush.
        name: a file's path, or a drive's address and nsid; may be empty.
    """

    nsid: int
    block_bytes: int
    blocks: int
    bytes: int
    writable: bool
    volatile_cache: bool
    name: str


class Activity:
    """While one is held, whoever has to look for commands does so at least every millisecond."""

    def __init__(self, native: _native.ControllerActivity) -> None:
        self._native = native

    def __enter__(self) -> Activity:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._native.end()


class Controller:
    """Commands that are written into the rings of `memory` get done. A context manager, which stops it."""

    def __init__(self, memory: QueueMemory, native: _native.Controller) -> None:
        self.memory: Final = memory
        self._any: Final = native

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def native(self) -> _native.Controller:
        """For the extension's clients."""
        return self._any

    def shape_of(self, nsid: int) -> NamespaceShape:
        """What there is to know of a namespace. ValueError: there is none of that number."""
        found = self._any.shape_of(nsid)
        if found is None:
            raise ValueError(f"there is no namespace {nsid}")
        return NamespaceShape(*found)

    def stop(self, deadline: float = DEADLINE) -> None:
        """See to it that nothing that was submitted lands any more. TimeoutError."""
        if not self._any.stop(deadline):
            raise TimeoutError(f"the controller did not come to rest within {deadline} s")

    def recreate_queues(self) -> None:
        """Give all queue pairs fresh rings, while stopped: clients and pools must be made anew."""
        self._any.recreate_queues()

    def activity(self) -> Activity:
        """Keep those awake who look for commands. Without any, and between wake() calls, they rest."""
        return Activity(self._any.activity())

    def wake(self) -> None:
        """Make them look now: before every launch, since a GPU's stores wake nobody."""
        self._any.wake()
