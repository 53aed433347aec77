"""What one case of fuzzing is, and what may come of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from bamquery.errors import BamQueryError, InternalError, MemoryLimitError

MEMORY_LIMIT = "256MB"
"""The setting of every connection."""


class FailureError(Exception):
    """A case that did not end as it may: what it did, in one line, that begins with a word for the kind."""


class Cases(Protocol):
    """Cases of one kind, made in a worker process."""

    def run(self, seed: int) -> str:
        """Do what the seed says; how it ended, for counting.

        Raises:
            FailureError: not as it may.
        """
        ...

    def close(self) -> None:
        """Remove what was made."""
        ...


@contextmanager
def judged(what: str, ends: list[str]) -> Iterator[None]:
    """Note how the work within ended: fine, or by an error that users are told about.

    Raises:
        FailureError: it ended by another one, or by one of BamQuery's faults.
    """
    try:
        yield
    except FailureError:
        raise
    except InternalError as error:
        raise FailureError(f"internal: {what}: {error}") from error
    except MemoryLimitError as error:
        if "the system has no more memory" in str(error):
            raise FailureError(f"memory: {what}: {error}") from error
        ends.append(type(error).__name__)
    except BamQueryError as error:
        ends.append(type(error).__name__)
    except Exception as error:
        kind = "memory" if isinstance(error, MemoryError) else "foreign"
        raise FailureError(f"{kind}: {what}: {type(error).__name__}: {error}") from error
    else:
        ends.append("fine")


_IN_PLACE: Final = (0, 0, 1, 2, 3, 4, 5)
_OF_TEXT: Final = (8, 8, 8, 8, 5, 6, 1, 2, 7)


def mutated(data: bytes, luck: random.Random, *, is_text: bool = False) -> bytes:
    """The bytes with one to four edits that disks, copies and attackers make.

    Most leave the places of other bytes what they are, as formats with offsets would be read no further; in
    text most put in what its grammar knows.
    """
    changed = bytearray(data or b"\0")
    for _ in range(luck.randint(1, 4)):
        places = [luck.randrange(len(changed) or 1) for _ in range(8)]
        # Rather not in padding, which little is.
        at = next((place for place in places if changed[place : place + 1] != b"\0"), places[0])
        usual = _OF_TEXT if is_text else _IN_PLACE
        match luck.choice(usual) if luck.random() < 0.85 else luck.randrange(9):
            case 0 | 1:
                changed[at : at + 1] = bytes([changed[at] ^ 1 << luck.randrange(8)]) if changed else b"\0"
            case 2:
                changed[at : at + 1] = luck.choice([b"\0", b"\x7f", b"\x80", b"\xff", b"\x01"])
            case 3:
                word = luck.choice([-1, 0, 1, 1 << 31, (1 << 31) - 1, 1 << 62, (1 << 63) - 1, -(1 << 63)])
                changed[at : at + 8] = word.to_bytes(8, "little", signed=True)
            case 4:
                page = at // 4096 * 4096
                changed[page : page + 4096] = bytes(len(changed[page : page + 4096]))
            case 5:
                start, size = luck.randrange(len(changed) or 1), luck.choice([1, 4, 8, 64, 4096])
                changed[at : at + size] = changed[start : start + size]
            case 6:
                del changed[at : at + luck.choice([1, 3, 8, 64])]
            case 7:
                del changed[at:]
            case 8:
                texts = [
                    b"0",
                    b"9" * 40,
                    b"-",
                    b"[" * 200,
                    b"null",
                    b'"',
                    b",",
                    b"\n",
                    b"\xff\xfe",
                    b"{",
                    b"1e999",
                ]
                changed[at : at + luck.randint(0, 2)] = luck.choice(texts)
    return bytes(changed)


def temporary_folder() -> Path | None:
    """Where cases are made: in memory where there is such a folder."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None
