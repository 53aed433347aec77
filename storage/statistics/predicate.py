"""Conditions on one column that a zone map can prune by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.storage.statistics.late_values import plain_values

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "in", "is_null", "is_not_null"]

OPPOSITES: Final[Mapping[Operator, Operator]] = MappingProxyType(
    {
        "=": "!=",
        "!=": "=",
        "<": ">=",
        ">=": "<",
        ">": "<=",
        "<=": ">",
        "is_null": "is_not_null",
        "is_not_null": "is_null",
    }
)
"""True of values of which the other one is false."""


@dataclass(frozen=True)
class RangePredicate:
    """`column operator values`: true, false or null for each row; only rows where it is true are wanted.

    `values` have the column's type (for a dictionary column: its value type). Comparisons take one value,
    `in` any number, the null tests none. NaN equals NaN and is greater than every number; -0 equals 0. A
    comparison with null is never true. For `in`, `members` is an Arrow array of values that are not null, or
    `LateValues`, in place of `values`. With `or_null` rows are wanted, too, in which the column is null.
    """

    column: str
    operator: Operator
    values: tuple[pa.Scalar[Any], ...] = ()
    or_null: bool = False
    members: Any = field(default=None, hash=False)

    @cached_property
    def ordered_values(self) -> NDArray[Any]:
        """Values of a type that counts something, as integers, ascending; nulls left out."""
        if self.members is None:
            values: Any = pa.array([value for value in self.values if value.is_valid])
        else:
            values = plain_values(self.members)
        if not pa.types.is_integer(values.type):
            values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
        found: NDArray[Any] = values.to_numpy()
        is_ordered = bool((found[1:] >= found[:-1]).all())  # as joins give them: a tenth of sorting's time
        return found if is_ordered else np.sort(found)

    def __post_init__(self) -> None:
        """A wrong number of values is a bug of the caller."""
        wanted = {"in": None, "is_null": 0, "is_not_null": 0}.get(self.operator, 1)
        assert wanted is None or len(self.values) == wanted, self
