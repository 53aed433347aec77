"""What a software controller does wrong on demand, for tests of what is built on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias

from bamquery import _native

FaultKind: TypeAlias = Literal["error", "delay", "reorder", "lose", "wrong_head", "tear"]


class Opcode(IntEnum):
    """Commands of the NVM command set."""

    FLUSH = 0
    WRITE = 1
    READ = 2


@dataclass(frozen=True)
class Fault:
    """Which commands go wrong, and how. Of a controller's faults the first that fits a command decides.

    Attributes:
        kind: ``error``: not executed, answered with `status`. ``delay``: executed and answered `delay`
            seconds later, so after its deadline if that is sooner. ``reorder``: executed and answered behind
            up to `window` commands that came after it in its queue. ``lose``: executed, never answered.
            ``wrong_head``: answered with a submission queue head that is no ring position, which breaks the
            queue pair. ``tear``: of a write only the first `bytes` are written; answered with `status`.
        nsid: the namespace; 0: any.
        opcode: the command; None: any.
        first_lba: commands that touch any of the `blocks` from here on.
        blocks: None: all to the end. Flushes touch all blocks.
        probability: of each command that fits.
        most: how often at most; None: no limit.
        status: status code type << 8 | status code; 0: success.
        delay: seconds.
        window: commands.
        bytes: of a torn write.
    """

    kind: FaultKind
    nsid: int = 0
    opcode: Opcode | None = None
    first_lba: int = 0
    blocks: int | None = None
    probability: float = 1.0
    most: int | None = None
    status: int = 0
    delay: float = 0.0
    window: int = 1
    bytes: int = 0

    def rule(self) -> _native.FaultRule:
        """The same, for the native code. ValueError: no such kind, a negative delay."""
        return _native.FaultRule(
            self.kind,
            nsid=self.nsid,
            opcode=None if self.opcode is None else int(self.opcode),
            first_lba=self.first_lba,
            blocks=self.blocks,
            probability=self.probability,
            most=self.most,
            status=self.status,
            delay=self.delay,
            window=self.window,
            torn_at=self.bytes,
        )
