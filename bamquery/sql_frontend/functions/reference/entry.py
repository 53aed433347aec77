"""An entry of the reference, as its file writes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

GpuSupport: TypeAlias = Literal["yes", "constants", "no"]
"""Over columns on a GPU: it runs, it runs where all arguments but the first are constants, it is refused."""

CONSTANTS: Final = "constants"
NO: Final = "no"


@dataclass(frozen=True, slots=True)
class Entry:
    """One function, or several that differ in their names only.

    Attributes:
        names: the first is the one that the others are other names of; with spaces between.
        signatures: `(x NUMERIC [, digits INTEGER]) -> NUMERIC`, with ` | ` between several. Beside SQL's
            types there are ANY, NUMERIC (any number), INTEGRAL (any integer) and TEMPORAL (any date or time);
            `...` is any number of arguments more.
        description: one line.
        gpu: what runs on a GPU.
        example: a call that can be run as it stands; empty where the signature says enough.
        call: how it is written where that is no plain call.
    """

    names: str
    signatures: str
    description: str
    gpu: GpuSupport = field(default="yes", kw_only=True)
    example: str = field(default="", kw_only=True)
    call: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Section:
    """Entries under a title of the page; `notes` follow them there, in Markdown."""

    title: str
    kind: Literal["scalar", "aggregate", "window", "table"]
    entries: tuple[Entry, ...]
    notes: str = ""
