"""GROUP BY over 100 million stored rows, in a process whose memory is measured."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROWS = 100_000_000
LIMIT = 2 << 30

_LOAD = """
import sys
import numpy as np, pyarrow as pa
import bamquery

rows, path = int(sys.argv[1]), sys.argv[2]

def batches():
    random = np.random.default_rng(7)
    for start in range(0, rows, 100_000):
        wide = random.integers(0, 1_000_000, 100_000)
        columns = [pa.array(wide), pa.array(wide % 3_000), pa.array(random.random(100_000))]
        yield pa.record_batch(columns, schema)

schema = pa.schema([("wide", pa.int64()), ("narrow", pa.int64()), ("value", pa.float64())])
with bamquery.connect(path) as connection:
    connection.load("t", pa.RecordBatchReader.from_batches(schema, batches()))
"""

_QUERY = """
import json, resource, sys, time
import bamquery

path, key = sys.argv[1], sys.argv[2]
with bamquery.connect(path) as connection:
    started = time.perf_counter()
    sql = f"SELECT {key}, count(*) AS n, sum({key}) AS s, avg(value) AS a FROM t GROUP BY {key}"
    answer = connection.sql(sql).to_arrow()
    seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
keys, counts, sums = (answer.column(i).to_pylist() for i in range(3))
exact = all(int(s) == k * n for k, n, s in zip(keys, counts, sums))
means = answer.column(3).to_numpy()
found = {"groups": len(keys), "rows": sum(counts), "exact": exact, "peak": peak, "seconds": seconds}
print(json.dumps(found | {"least": float(means.min()), "most": float(means.max())}))
"""


def child(program: str, *arguments: str) -> str:
    """What a program in a process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """100 million rows, written by another process."""
    path = tmp_path_factory.mktemp("large") / "db"
    child(_LOAD, str(ROWS), str(path))
    yield path
    shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "groups"), [("narrow", 3_000), ("wide", 1_000_000)])
def test_peak_memory(database: Path, key: str, groups: int) -> None:
    found = json.loads(child(_QUERY, str(database), key))
    print(found)
    assert found["groups"] == groups
    assert found["rows"] == ROWS
    assert found["exact"]
    assert 0 <= found["least"] < 0.5 < found["most"] <= 1
    assert found["peak"] < LIMIT
