"""Arrow arrays into the GPU's memory: one copy."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.copying import OutOfBoundsPolicy

from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.cuda.transfer.arrow_layout import to_libcudf_layout


def upload(session: CudaSession, array: pa.Array[Any]) -> plc.Column:
    """A column of the array's values. A dictionary's values are looked up on the GPU.

    The copy may still run when this returns: the session holds the array until its stream has done it.
    """
    if not len(array):
        # libcudf would copy from where an empty slice's buffers are not.
        kind = device_type(array.type)
        return plc.column_factories.make_empty_column(kind, stream=session.stream, mr=session.memory)
    if isinstance(array, pa.DictionaryArray):
        return _decode_dictionary(session, array)
    sent = to_libcudf_layout(array)
    return plc.Column.from_arrow(sent, stream=session.stream, mr=session.memory)


def _decode_dictionary(session: CudaSession, array: pa.DictionaryArray[Any, Any]) -> plc.Column:
    """One value a row; a null index is a place beyond the dictionary, where there is nothing."""
    if not len(array.dictionary):
        nothing: Any = pa.nulls(len(array), array.dictionary.type)
        return upload(session, nothing)
    indices: Any = array.indices.cast(pa.int32())
    if indices.null_count:
        indices = indices.fill_null(len(array.dictionary))
    places = upload(session, indices)
    table = plc.Table([upload(session, array.dictionary)])
    found = plc.copying.gather(
        table, places, OutOfBoundsPolicy.NULLIFY, stream=session.stream, mr=session.memory
    )
    return found.columns()[0]
