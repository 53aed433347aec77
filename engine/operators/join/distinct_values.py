"""Different values of columns: numbers by a table of flags or a sort, others by hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.storage.format.storable_types import is_counted

_SPARSEST: Final = 16
"""Flags for each value up to which a table takes less time than hashes."""
_SMALL: Final = 1 << 16
_MOST: Final = 1 << 24
"""Flags of tables that are always made, and of the largest ones."""


def distinct_values(columns: Sequence[pa.Array[Any]]) -> pa.Array[Any]:
    """Each value of one or more columns of one type once, in any order; no null."""
    whole: Any = pc.drop_null(pa.concat_arrays(list(columns)))
    counted = len(whole) and is_counted(whole.type)
    found: pa.Array[Any] = _numbers(whole) if counted else pc.unique(whole)
    return found


def _numbers(column: Any) -> pa.Array[Any]:
    kind = column.type
    plain: Any = column
    if not pa.types.is_integer(kind):
        plain = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    values = plain.to_numpy()
    low, high = int(values.min()), int(values.max())
    if high - low < min(_MOST, max(_SPARSEST * len(values), _SMALL)):
        # In 64 bits, where the largest unsigned numbers wrap, their lowest too.
        least = values.dtype.type(low).astype(np.int64)
        flags = np.zeros(high - low + 1, np.bool_)
        flags[values.astype(np.int64, copy=False) - least] = True
        once = (np.flatnonzero(flags) + least).astype(values.dtype)
    else:  # a sort takes a third of the time that hashes take
        ordered = np.sort(values)
        once = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    found: Any = pa.array(once, plain.type)
    distinct: pa.Array[Any] = found if plain is column else found.view(kind)
    return distinct
