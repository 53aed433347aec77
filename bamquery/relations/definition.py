"""What a relation is as SQL text, where text says all of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bamquery.sql_frontend.parser.parser import strip_trailing_semicolons

SELF: Final = "self"
OTHER: Final = "other"
_OWN_NAMES: Final = re.compile(rf"\b({SELF}|{OTHER})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Definition:
    """A statement, and what its names `self` and `other` stand for.

    Attributes:
        text: one statement, as a user wrote it or as a method made it.
        over: definitions by these names; none for what a user wrote.
    """

    text: str
    over: Mapping[str, Definition] = field(default_factory=dict)

    def sql(self) -> str | None:
        """One statement; None where its own tables have the names that it would need."""
        base, steps = self, []
        while base.over:
            steps.append(base)
            base = base.over[SELF]
        text = strip_trailing_semicolons(base.text)
        for step in reversed(steps):
            parts = {SELF: text}
            for name, other in step.over.items():
                if name != SELF:
                    part = other.sql()
                    if part is None or _OWN_NAMES.search(part):
                        return None  # they would mean something else within this statement
                    parts[name] = part
            named = ", ".join(f"{name} AS (\n{part}\n)" for name, part in parts.items())
            text = f"WITH {named} FROM (\n{strip_trailing_semicolons(step.text)}\n)"
        return text
