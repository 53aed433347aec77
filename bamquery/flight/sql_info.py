"""What the server says of itself: Flight SQL's `SqlInfo`, by the numbers of its specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from bamquery import __version__

_VALUES: Final = (
    ("string_value", pa.utf8()),
    ("bool_value", pa.bool_()),
    ("bigint_value", pa.int64()),
    ("int32_bitmask", pa.int32()),
    ("string_list", pa.list_(pa.utf8())),
    ("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
)
"""Members of the union; the place is the type's code."""
_STRING, _BOOL, _BIGINT, _BITMASK = range(4)
_CASE_INSENSITIVE: Final = 1
_NULLS_AT_END: Final = 3
_NO_TRANSACTIONS: Final = 0


def sql_info(wanted: Sequence[int], *, read_only: bool) -> pa.Table:
    """Rows of number and value: those that are wanted and known, or all where none is named."""
    everything: dict[int, tuple[int, Any]] = {
        0: (_STRING, "BamQuery"),
        1: (_STRING, __version__),
        2: (_STRING, pa.__version__),
        3: (_BOOL, read_only),
        4: (_BOOL, True),  # SQL
        5: (_BOOL, False),  # Substrait
        8: (_BITMASK, _NO_TRANSACTIONS),
        9: (_BOOL, True),  # queries can be cancelled
        10: (_BOOL, not read_only),  # bulk ingestion
        11: (_BOOL, False),  # that of transactions
        500: (_BOOL, False),  # CREATE CATALOG
        501: (_BOOL, False),  # CREATE SCHEMA
        502: (_BOOL, not read_only),  # CREATE TABLE
        503: (_BIGINT, _CASE_INSENSITIVE),
        504: (_STRING, '"'),
        505: (_BIGINT, _CASE_INSENSITIVE),
        506: (_BOOL, True),  # all tables can be selected from
        507: (_BIGINT, _NULLS_AT_END),
        513: (_STRING, "\\"),
    }
    numbers = [number for number in (wanted or everything) if number in everything]
    children: list[list[Any]] = [[] for _ in _VALUES]
    codes, offsets = [], []
    for number in numbers:
        code, value = everything[number]
        codes.append(code)
        offsets.append(len(children[code]))
        children[code].append(value)
    union = pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(values, kind) for values, (_, kind) in zip(children, _VALUES, strict=True)],
        [name for name, _ in _VALUES],
    )
    schema = pa.schema(
        [pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", union.type, nullable=False)]
    )
    return pa.Table.from_arrays([pa.array(numbers, pa.uint32()), union], schema=schema)
