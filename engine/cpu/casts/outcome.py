"""What a cast gives before it is known whether a value that does not fit is an error or null."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import Column, any_true, compute, null_where


@dataclass(frozen=True, slots=True)
class Outcome:
    """Converted values and where conversion failed.

    Attributes:
        values: the column in its new type, null where it failed.
        failed: true where a value (not a null) does not fit; None where all do.
    """

    values: Column
    failed: Column | None = None


Conversion: TypeAlias = Callable[[Column, Any], Outcome]


def failed_where_valid(failed: NDArray[np.bool_], column: Column) -> Column | None:
    """`failed` where the column is not null, or None where that is nowhere."""
    if not failed.any():
        return None
    mask: Column = pa.array(failed)
    if column.null_count:
        mask = compute("and", mask, compute("is_valid", column))
    return mask if any_true(mask) else None


def null_where_failed(failed: Column | None, column: Column) -> Column:
    """The column, null where conversion fails."""
    return column if failed is None else null_where(failed, column)
