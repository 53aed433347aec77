"""Functions that compare two values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MIRRORED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "equal": "equal",
        "not_equal": "not_equal",
        "less": "greater",
        "less_equal": "greater_equal",
        "greater": "less",
        "greater_equal": "less_equal",
        "is_distinct_from": "is_distinct_from",
        "is_not_distinct_from": "is_not_distinct_from",
    }
)
"""Each comparison, and the one that says the same of the two values in the other order."""
