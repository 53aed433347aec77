"""Whole frames between Arrow and the GPU: one copy each way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.cuda.transfer.arrow_layout import from_libcudf_layout
from bamquery.engine.cuda.transfer.upload import upload
from bamquery.plan.nodes import Field


def from_arrow(session: CudaSession, batch: pa.RecordBatch) -> CudaFrame:
    """The batch's columns in the GPU's memory; waits for the copy."""
    return from_columns(session, batch.columns, batch.num_rows)


def from_columns(session: CudaSession, columns: Sequence[pa.Array[Any]], rows: int) -> CudaFrame:
    """The columns in the GPU's memory; waits for the copy, so that they may be let go of."""
    uploaded = [upload(session, column) for column in columns]
    session.synchronize()
    return make_frame(uploaded, rows)


def to_arrow(session: CudaSession, frame: CudaFrame, fields: Sequence[Field]) -> pa.RecordBatch:
    """A batch with the fields' names and types; waits for all work before it.

    Raises:
        ExecutionError: there are more distinct values than a dictionary's index type can number.
    """
    if not frame.columns:
        return pa.RecordBatch.from_struct_array(pa.nulls(frame.rows, pa.struct([])))
    session.synchronize()  # so that what is left to wait for is the copy
    pairs = zip(frame.columns, fields, strict=True)
    arrays = [from_libcudf_layout(download(session, column), field.type) for column, field in pairs]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(f.name, f.type) for f in fields]))


def download(session: CudaSession, column: plc.Column) -> pa.Array[Any]:
    """The column as libcudf gives it."""
    array: Any = column.to_arrow(stream=session.stream)
    found: pa.Array[Any] = array
    return found
