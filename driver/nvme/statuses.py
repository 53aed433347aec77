"""Reads that a drive must refuse, and what it says then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from bamquery.driver.controller import Controller, NamespaceShape
from bamquery.driver.queue_client import QueueClient
from bamquery.errors import NvmeError

_BEYOND: Final = ((0, 0x80),)
"""LBA Out of Range."""
_NO_NAMESPACE: Final = ((0, 0x0B), (0, 0x02))
"""Invalid Namespace or Format; Invalid Field in Command, of one that could be and is not."""
_DEADLINE: Final = 10.0
_LAST_NAMESPACE: Final = 0xFFFFFFFE
"""Beyond what any drive has, and not the number that means all."""


@dataclass(frozen=True)
class Refusal:
    """What came of a read that must be refused.

    Attributes:
        asked: in words.
        nsid: of the command.
        lba: its first block.
        blocks: how many.
        sct: status code type and
        sc: status code that came; None: none did, or one of success.
        answer: in words.
        as_expected: whether the status is the one of the specification.
    """

    asked: str
    nsid: int
    lba: int
    blocks: int
    sct: int | None
    sc: int | None
    answer: str
    as_expected: bool

    @property
    def refused(self) -> bool:
        """Whether the drive refused at all."""
        return self.sc is not None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def try_refusals(controller: Controller, shape: NamespaceShape) -> Iterator[Refusal]:
    """Read what is not there."""
    client = QueueClient(controller)
    blocks, nsid = shape.blocks, shape.nsid
    for asked, where, lba, count, expected in (
        ("the block behind the last", nsid, blocks, 1, _BEYOND),
        ("the last block and the one behind", nsid, blocks - 1, 2, _BEYOND),
        ("a block far behind the last", nsid, 1 << 62, 1, _BEYOND),
        ("a namespace that is not there", _LAST_NAMESPACE, 0, 1, _NO_NAMESPACE),
    ):
        if count * shape.block_bytes <= controller.memory.slot_bytes:
            yield _try(client, asked, (where, lba, count), expected)


def _try(
    client: QueueClient, asked: str, place: tuple[int, int, int], expected: Iterable[tuple[int, int]]
) -> Refusal:
    try:
        client.read(*place, _DEADLINE)
    except NvmeError as error:
        status = (error.sct, error.sc)
        return Refusal(asked, *place, *status, str(error), status in expected)
    return Refusal(asked, *place, None, None, "it was read, as if it were there", False)
