"""What a look at one part of the machine says."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How good what was found is."""

    OK = "ok"
    NOTE = "note"
    """Works; something could be better, or is worth knowing."""
    MISSING = "missing"
    """What depends on it does not work here."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    check: str
    level: Level
    found: str
    """What is there."""
    meaning: str = ""
    """What follows from it, in one line; not for `ok`."""
    advice: str = ""
    """What to do about it, in one line; not for `ok`."""
    needed: bool = False
    """Whether BamQuery cannot run at all without it."""
    values: dict[str, Any] = field(default_factory=dict)
    """The same for programs."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self) | {"level": str(self.level)}
