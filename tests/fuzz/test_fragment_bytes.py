"""Fragments with any bytes: values or an error, and never a crash; also where the checksum fits."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery._native import crc32c
from bamquery.errors import CorruptionError
from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.format.layout import ALIGNMENT
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.writer import BatchRows, write_fragment
from bamquery.storage.statistics.vector_statistics import VectorStatistics
from bamquery.storage.statistics.vectors_file import (
    LAYOUT_KEY,
    SECTIONS_KEY,
    describe_vectors_file,
    sections,
    sections_text,
)
from tests.fuzz.fragment_mutations import rows
from tests.selection.effort import effort

SCRIPT = Path(__file__).parent / "fragment_mutations.py"


def run(folder, kind, seed, count):
    command = [sys.executable, "-X", "faulthandler", str(SCRIPT), str(folder), kind, str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = done.stdout.split()[-1:]
    assert done.returncode == 0, f"mutation {last} of {kind}: {done.returncode}\n{done.stderr[-3000:]}"
    assert last == [str(seed + count - 1)]


PLAIN, PACKED = ["vectors", "data"], ["packed vectors", "packed data", "parameters", "values"]


@pytest.mark.long
@pytest.mark.parametrize("kind", PLAIN + PACKED)
def test_mutated_fragments(tmp_path, kind):
    run(tmp_path, kind, 0, effort(40, 100))


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLAIN + PACKED)
@pytest.mark.parametrize("seed", range(10_000, 60_000, 10_000))
def test_many_mutated_fragments(tmp_path, kind, seed):
    run(tmp_path, kind, seed, 10_000)


def forge(folder, entry, statistics, metadata):
    """Write another vectors file behind right checksums; the entry for it."""

    def written():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, statistics.schema.with_metadata(metadata)) as writer:
            writer.write_batch(statistics)
        return sink.getvalue()

    data = written()
    found = sections(data)
    crcs = [crc32c(memoryview(data)[section.begin : section.end]) for section in found]
    metadata = metadata | {SECTIONS_KEY: sections_text(found, crcs)}
    file = describe_vectors_file(written())
    (folder / entry.vectors_name).write_bytes(file.data)
    return dataclasses.replace(entry, **file.entry_members)


def rename(statistics):
    return statistics.rename_columns(["other", *statistics.schema.names[1:]])


def with_counts(name, kind, counts):
    """A change that makes the statistics of a column claim these counts."""

    def change(statistics):
        index = statistics.schema.get_field_index(name)
        column = statistics.column(index)
        fields = [column.type.field(i) for i in range(column.type.num_fields)]
        arrays = [pa.array(counts, pa.uint16()) if f.name == kind else column.field(f.name) for f in fields]
        return statistics.set_column(index, name, pa.StructArray.from_arrays(arrays, fields=fields))

    return change


@pytest.mark.parametrize(
    "change",
    [
        rename,
        with_counts("id", "null_count", [1, 0, 0]),  # a column without validity
        with_counts("text", "null_count", [1025, 0, 0]),
        with_counts("text", "null_count", [0, 0, 953]),  # the last vector has 952 rows
        with_counts("real", "nan_count", [1024, 0, 0]),  # and nulls besides
    ],
)
def test_statistics_that_cannot_be_are_refused(tmp_path, change):
    batch = rows()
    entry = write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]))
    with pa.ipc.open_file(pa.py_buffer((tmp_path / entry.vectors_name).read_bytes())) as reader:
        metadata, statistics = reader.schema.metadata, change(reader.get_batch(0))
    forged = forge(tmp_path, entry, statistics, metadata)
    with pytest.raises(CorruptionError) as caught:
        VectorStatistics(tmp_path / entry.vectors_name, forged, batch.schema).require_all()
    assert caught.value.path == tmp_path / entry.vectors_name


def test_a_layout_outside_of_the_file_is_refused_with_its_column(tmp_path):
    """Layouts are looked at when their columns are: others are read, and a check says what is wrong."""
    batch = rows()
    entry = write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]))
    with pa.ipc.open_file(pa.py_buffer((tmp_path / entry.vectors_name).read_bytes())) as reader:
        metadata, statistics = reader.schema.metadata, reader.get_batch(0)
    layout = json.loads(metadata[LAYOUT_KEY])
    layout["columns"][1]["values"][0] += entry.data_bytes // ALIGNMENT * ALIGNMENT
    forged = forge(tmp_path, entry, statistics, metadata | {LAYOUT_KEY: json.dumps(layout)})
    fragment = Fragment.open(tmp_path, forged, batch.schema)
    message = 'it cannot be read: its layout of column "real" does not fit the file'
    for used in (fragment.column, fragment.zone_map.column, fragment.has_parts):
        with pytest.raises(CorruptionError, match=message) as caught:
            used("real")
        assert caught.value.path == tmp_path / entry.vectors_name
    assert fragment.zone_map.column("id").minimum.to_pylist() == [0, 1024, 2048]
    assert [str(error) for error in fragment.check()] == [str(caught.value)]
