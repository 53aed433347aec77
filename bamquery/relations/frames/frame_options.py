"""What callers may choose of how columns come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

HugeInts: TypeAlias = Literal["float64", "int64", "object"]
"""What HUGEINT becomes: the nearest float64, int64 where all of them fit, or Python's int."""
Decimals: TypeAlias = Literal["float", "decimal", "arrow"]
"""What DECIMAL becomes: the nearest float64, Python's Decimal, or in pandas Arrow's own type."""


def require_choice(value: object, choices: Sequence[str], argument: str) -> None:
    """Refuse what is none of the choices.

    Raises:
        ValueError: it is not; says what there is.
    """
    if value not in choices:
        raise ValueError(f"{argument} is one of {', '.join(map(repr, choices))}, not {value!r}")
