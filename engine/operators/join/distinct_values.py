"""Different values of columns: numbers by a table of flags or a sort, others by hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.operators.join.number_summary import summarize_numbers
from bamquery.storage.format.storable_types import is_counted


def distinct_values(columns: Sequence[pa.Array[Any]]) -> pa.Array[Any]:
    """Each value of one or more columns of one type once, in any order; no null."""
    if is_counted(columns[0].type):
        once = summarize_numbers(columns, distinct=True).distinct
        assert once is not None
        return once
    found: pa.Array[Any] = pc.unique(pc.drop_null(pa.concat_arrays(list(columns))))
    return found
