"""Dictionaries of columns, as any device hands them to the host."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.errors import ExecutionError


def with_index_type(encoded: pa.DictionaryArray[Any, Any], kind: Any) -> pa.DictionaryArray[Any, Any]:
    """Values under a dictionary, as exactly that type of dictionaries.

    Raises:
        ExecutionError: there are more distinct values than the index type can number.
    """
    try:
        indices: Any = encoded.indices.cast(kind.index_type)
    except pa.ArrowInvalid:
        raise ExecutionError(
            f"{len(encoded.dictionary)} distinct values do not fit a dictionary with "
            f"{kind.index_type} indices; cast the column to {type_name(kind.value_type)}"
        ) from None
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)
