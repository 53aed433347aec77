"""Our IPC metadata says what pyarrow's does, and has the length that was promised."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.storage.format.arrow_ipc import (
    END_OF_STREAM,
    HEAD,
    Batch,
    FileBlock,
    dictionary_batch_message,
    file_tail,
    record_batch_message,
    schema_message,
)
from bamquery.storage.format.layout import ALIGNMENT, Extent
from tests.unit.storage.random_columns import ALL_TYPES

numbers = st.integers(0, 2**62)
extents = st.builds(Extent, numbers, numbers)


@given(st.lists(st.tuples(st.text(max_size=20), st.sampled_from(ALL_TYPES), st.booleans()), max_size=8))
def test_schemas(columns: list[tuple[str, pa.DataType, bool]]) -> None:
    schema = pa.schema([pa.field(*column) for column in columns])
    message = schema_message(schema)
    assert len(message) % 8 == 0
    assert pa.ipc.read_schema(pa.py_buffer(message)).equals(schema)


@settings(max_examples=50)
@given(
    columns=st.integers(0, 40),
    rows=numbers,
    data=st.data(),
    at=st.integers(0, 100).map(lambda n: 8 * n),
)
def test_messages_end_at_a_boundary_whatever_their_numbers(
    columns: int, rows: int, data: st.DataObject, at: int
) -> None:
    zeros = Batch(0, [(0, 0)] * columns, [Extent(0, 0)] * (2 * columns), 0)
    counts = data.draw(st.lists(st.tuples(numbers, numbers), min_size=columns, max_size=columns))
    buffers = data.draw(st.lists(extents, min_size=2 * columns, max_size=2 * columns))
    filled = Batch(rows, counts, buffers, data.draw(numbers))
    for make in (record_batch_message, lambda batch, at: dictionary_batch_message(7, batch, at)):
        message = make(filled, at)
        assert len(message) == len(make(zeros, at))
        assert (at + len(message)) % ALIGNMENT == 0
        assert int.from_bytes(message[4:8], "little") == len(message) - 8


@pytest.mark.parametrize("columns", range(0, 60, 7))
@pytest.mark.parametrize("at", [4096, 4104, 8184])
def test_tails_end_files_at_a_boundary(columns: int, at: int) -> None:
    schema = pa.schema([(f"column {i}", ALL_TYPES[i % len(ALL_TYPES)]) for i in range(columns)])
    tail = file_tail(schema, [FileBlock(8, 16, 32)] * columns, FileBlock(4096, 4096, 8192), at)
    assert (at + len(tail)) % ALIGNMENT == 0
    assert tail.startswith(END_OF_STREAM)
    reader = pa.ipc.open_file(pa.py_buffer(HEAD + bytes(at - len(HEAD)) + tail))
    assert reader.schema.equals(schema)
    assert reader.num_record_batches == 1
