"""Different values of columns: numbers by a table of flags or a sort, others by hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery import _native as native
from bamquery.storage.format.storable_types import is_counted


def distinct_values(columns: Sequence[pa.Array[Any]]) -> pa.Array[Any]:
    """Each value of one or more columns of one type once, in any order; no null."""
    whole: Any = pc.drop_null(pa.concat_arrays(list(columns)))
    found: pa.Array[Any] = _numbers(whole) if is_counted(whole.type) else pc.unique(whole)
    return found


def _numbers(column: Any) -> pa.Array[Any]:
    plain: Any = column
    if not pa.types.is_integer(column.type):
        plain = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values = plain.to_numpy()
    once = native.distinct_numbers(values)
    if once is None:  # a sort takes a third of the time that hashes take
        ordered = np.sort(values)
        once = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    found: Any = pa.array(once, plain.type)
    distinct: pa.Array[Any] = found if plain is column else found.view(column.type)
    return distinct
