"""Loading takes memory for two fragments and what is read ahead, whatever is loaded."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.storage.ingest.benchmark import write_trips

pytestmark = pytest.mark.slow

GIB = 1 << 30

CHILD = """
import sys
from bamquery.storage.database.database import Database
from bamquery.storage.ingest.ingest import ingest
from bamquery.storage.ingest.opening import open_source
from tests.peak_memory import peak_bytes

source = open_source(sys.argv[2])
with Database.open(sys.argv[1]) as database, database.create_table("t", source.schema) as writer:
    rows = ingest(writer, source)
    writer.commit()
print(rows, peak_bytes())
"""


def peak(folder, path, rows):
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder / "db"), str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded, peak_bytes = map(int, run.stdout.split())
    assert loaded == rows
    return peak_bytes


def test_twenty_million_rows_of_parquet(tmp_path):
    write_trips(tmp_path / "x.parquet", 20_000_000)
    used = peak(tmp_path, tmp_path / "x.parquet", 20_000_000)
    print(f"peak {used >> 20} MiB")
    assert used < GIB


def test_one_huge_row_group(tmp_path):
    batch = pa.record_batch({f"c{i}": np.random.default_rng(i).random(1 << 20) for i in range(12)})
    with pq.ParquetWriter(tmp_path / "x.parquet", batch.schema, use_dictionary=False) as writer:
        writer.write_table(pa.Table.from_batches([batch] * 16), row_group_size=1 << 30)
    metadata = pq.read_metadata(tmp_path / "x.parquet")
    assert metadata.num_row_groups == 1
    assert metadata.row_group(0).total_byte_size > 1.5 * GIB
    used = peak(tmp_path, tmp_path / "x.parquet", 16 << 20)
    print(f"peak {used >> 20} MiB")
    assert used < GIB


def test_one_huge_record_batch(tmp_path):
    column = pa.array(np.random.default_rng(0).random(16 << 20))
    batch = pa.record_batch({f"c{i}": column for i in range(12)})
    with pa.ipc.new_file(tmp_path / "x.arrow", batch.schema) as writer:
        writer.write_batch(batch)
    used = peak(tmp_path, tmp_path / "x.arrow", 16 << 20)
    print(f"peak {used >> 20} MiB")
    assert used < GIB


def test_csv(tmp_path):
    write_trips(tmp_path / "x.parquet", 1 << 20)
    lines = tmp_path / "lines.csv"
    pa.csv.write_csv(pq.read_table(tmp_path / "x.parquet"), lines)
    header, rows = lines.read_bytes().split(b"\n", 1)
    with (tmp_path / "x.csv").open("wb") as file:
        file.write(header + b"\n")
        for _ in range(10):
            file.write(rows)
    used = peak(tmp_path, tmp_path / "x.csv", 10 << 20)
    print(f"peak {used >> 20} MiB")
    assert used < GIB


def test_json(tmp_path):
    line = '{"id": 18446744073709551615, "name": "someone", "when": "2024-01-01 10:00:00", "x": 1.5}\n'
    with (tmp_path / "x.json").open("w") as file:
        file.write("null\n")
        for _ in range(40):
            file.write(line * 100_000)
    used = peak(tmp_path, tmp_path / "x.json", 4_000_001)
    print(f"peak {used >> 20} MiB")
    assert used < GIB
