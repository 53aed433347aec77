"""Arrow's JSON parser, for the blocks that it reads right: at others it would round or crash."""

from __future__ import annotations

import io
import re
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from bamquery.statement_context.cancellation import check_cancelled, interruptible
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.json.blocks import JsonBlock
from bamquery.storage.ingest.json.columns import Built
from bamquery.storage.ingest.json.values import text_of

_MOST_NESTED: Final = 100
_LONG_BLOCK: Final = 16 << 20
"""Bytes that take a noticeable time to parse: one object alone."""
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_NO_BIGINT: Final = float(1 << 63)
"""The parser makes doubles of integers from here on, and then of all others in the column."""


def infer_with_arrow(block: JsonBlock, path: Path) -> tuple[int, dict[str, DataType]] | None:
    """How many rows a block has, and its members with their types; None if the parser cannot tell.

    Raises:
        IngestError: the block is not UTF-8.
    """
    if _is_deep(block.data):
        return None  # it takes a call for each level, and there is an end to the stack
    table = _parse_block(block, None, path)
    if table is None or any(_may_round(column) for column in table.columns):
        return None
    types = {}
    for name, type_ in zip(table.column_names, table.schema.types, strict=True):
        # Arrow makes timestamps of some texts; which texts are is decided by all of them.
        is_text = pa.types.is_string(type_) or pa.types.is_timestamp(type_)
        types[name] = pa.large_string() if is_text else type_
    return table.num_rows, types


def parse_with_arrow(block: JsonBlock, schema: pa.Schema, path: Path) -> Built | None:
    """The block's values under `schema`; None if something there is not of these types.

    Raises:
        IngestError: the block is not UTF-8.
    """
    table = _parse_block(block, schema, path)
    if table is None:
        return None
    arrays: list[Any] = [
        column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns
    ]
    return Built(table.num_rows, tuple(arrays), frozenset())


def _parse_block(block: JsonBlock, schema: pa.Schema | None, path: Path) -> pa.Table | None:
    text_of(block, path)
    if block.data.lstrip().startswith(b"null"):
        return None  # it crashes at a null that comes before any object
    read = partial(
        json.read_json,
        io.BytesIO(block.data),
        read_options=json.ReadOptions(block_size=len(block.data) + 1, use_threads=False),
        parse_options=json.ParseOptions(
            explicit_schema=schema,
            newlines_in_values=block.unit == "object",
            unexpected_field_behavior="infer" if schema is None else "ignore",
        ),
    )
    check_cancelled()
    try:
        return interruptible(read) if len(block.data) > _LONG_BLOCK else read()
    except pa.ArrowInvalid:
        return None


def _may_round(column: pa.ChunkedArray[Any]) -> bool:
    if not pa.types.is_floating(column.type):
        return False
    return pc.any(pc.greater_equal(pc.abs(column), pa.scalar(_NO_BIGINT))).as_py() is True


def _is_deep(data: bytes) -> bool:
    """Whether values may be nested more than `_MOST_NESTED` deep."""
    # An object that begins on the line behind another one's end is no deeper than that.
    if data.count(b"{") + data.count(b"[") - data.count(b"}\n{") <= _MOST_NESTED:
        return False
    outside = np.frombuffer(_STRING.sub(b"", data), np.uint8)
    steps = np.zeros(len(outside), np.int8)
    steps[(outside == ord("{")) | (outside == ord("["))] = 1
    steps[(outside == ord("}")) | (outside == ord("]"))] = -1
    return bool(np.cumsum(steps, dtype=np.int32).max(initial=0) > _MOST_NESTED)
