"""What whoever drives rings tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Reads:
    """Some commands of one kind.

    Attributes:
        kind: what issued them, and their size.
        commands: that ended.
        wrong: words of 8 bytes that are not what they should be.
        failed: commands, and waits for a slot or a pair, that did not succeed.
    """

    kind: str
    commands: int
    wrong: int
    failed: int


@dataclass(frozen=True)
class Refusals:
    """Statuses, type and code, of what cannot be; 0 is success.

    Attributes:
        beyond: of a read behind the namespace's end.
        missing: of one from a namespace that is not there.
        after: of a read that can be, after these.
        write: of a write.
    """

    beyond: int
    missing: int
    after: int
    write: int


class Rings(Protocol):
    """Queue pairs, and who drives them."""

    @property
    def name(self) -> str:
        """Who writes the entries."""

    def read(self, commands: int, sizes: tuple[int, ...]) -> Iterator[Reads]:
        """So many commands or a few more, of each of these sizes in blocks as many."""

    def refusals(self) -> Refusals:
        """How what cannot be is refused."""

    def lost(self) -> int:
        """Commands that missed their deadline, and pairs whose controller broke the protocol."""
