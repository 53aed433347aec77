"""Values that lie in a device's memory, and come to the host's only where somebody looks at them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import pyarrow as pa


class LateValues(ABC):
    """What a long list may have in place of an Arrow array, as much of that as who prunes by it asks.

    Attributes:
        type: of each value: one that counts something, as an integer or a date does.
        rows: values, some of which may be equal; none is null.
        bounds: the least and the greatest, as what they count; none is beyond.
    """

    def __init__(self, kind: pa.DataType, rows: int, bounds: tuple[int, int]) -> None:
        self.type = kind
        self.rows = rows
        self.bounds = bounds

    def __len__(self) -> int:
        return self.rows

    @cached_property
    def values(self) -> pa.Array[Any]:
        """Each value once, copied."""
        return self._copy()

    @abstractmethod
    def _copy(self) -> pa.Array[Any]: ...


def plain_values(values: Any) -> pa.Array[Any]:
    """The array itself, or what late values are."""
    found: pa.Array[Any] = values.values if isinstance(values, LateValues) else values
    return found
