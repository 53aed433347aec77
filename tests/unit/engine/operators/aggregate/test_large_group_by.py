"""GROUP BY over 100 million stored rows, and by long texts, in a process whose memory is measured."""

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
_BARE = 128 << 20
"""What a process takes before it is asked anything, and some more."""

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
import json, sys, time
import bamquery
from tests.peak_memory import peak_bytes

path, key = sys.argv[1], sys.argv[2]
with bamquery.connect(path) as connection:
    started = time.perf_counter()
    sql = f"SELECT {key}, count(*) AS n, sum({key}) AS s, avg(value) AS a FROM t GROUP BY {key}"
    answer = connection.sql(sql).to_arrow()
    seconds = time.perf_counter() - started
peak = peak_bytes()
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


_LOAD_TEXTS = """
import sys
import bamquery

with bamquery.connect(sys.argv[1], device="cpu") as connection:
    connection.sql("CREATE TABLE u AS SELECT i, md5(i::VARCHAR) AS s2 FROM range(30000) r(i)")
    connection.sql("CREATE TABLE t AS SELECT i, s2 AS s, repeat(s2, 1000) AS w FROM u")
"""

_HOLD_TEXTS = """
import sys, threading, time
import bamquery

peak = 0

def watch():
    global peak
    while True:
        with open("/proc/self/status") as status:
            (line,) = [line for line in status if line.startswith("RssAnon")]
        peak = max(peak, int(line.split()[1]) * 1024)
        time.sleep(0.005)

with bamquery.connect(sys.argv[1], device="cpu") as connection:
    connection.sql(f"SET memory_limit = '{sys.argv[2]}'")
    connection.sql("SET threads = 2")
    threading.Thread(target=watch, daemon=True).start()
    answer = connection.sql(sys.argv[3]).fetchall()
assert answer == [(30000,)], answer
print(peak)
"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gigabyte in 30,000 texts, and what they are made of."""
    path = tmp_path_factory.mktemp("texts") / "db"
    child(_LOAD_TEXTS, str(path))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("limit", [200 << 20, 1 << 30])
@pytest.mark.parametrize("text", ["w", "repeat(s, 1000)"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM (SELECT {0}, count(*) FROM t GROUP BY {0})",
        "SELECT count(DISTINCT {0}) FROM t",
        "SELECT count(*) FROM (SELECT i, max({0}) AS m FROM t GROUP BY i) WHERE m > ''",
        "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY {0}) AS r FROM t)",
        "SELECT count(*) FROM t JOIN u ON {0} = repeat(u.s2, 1000)",
        "SELECT count(*) FROM (SELECT {0} FROM t UNION SELECT {0} FROM t)",
    ],
)
def test_long_texts(texts: Path, query: str, text: str, limit: int) -> None:
    """Few rows, but large ones: stored, and made by the query."""
    peak = int(child(_HOLD_TEXTS, str(texts), str(limit), query.format(text)))
    assert peak < _BARE + 1.25 * limit
