"""A process that is killed while its queries keep rows in files: the next one finds nothing of them."""

import signal
import subprocess
import sys

import pyarrow as pa
import pytest

import bamquery

CHILD = """
import os, signal, sys
import bamquery
from bamquery.engine.execution.spill_files import BatchFile

written = BatchFile.write_batch
batches = []

def killed(file, batch):
    written(file, batch)
    batches.append(batch.num_rows)
    if len(batches) == 40:
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        assert any(os.readlink(link).endswith("(deleted)") for link in links if os.path.lexists(link))
        os.kill(os.getpid(), signal.SIGKILL)

BatchFile.write_batch = killed
with bamquery.connect(sys.argv[1], device="cpu", memory_limit="100 kB", threads=2) as connection:
    connection.sql(sys.argv[2]).to_arrow()
"""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM t ORDER BY k DESC",
        "SELECT k, count(*) FROM t GROUP BY k",
        "SELECT a.k FROM t AS a JOIN t AS b ON a.k = b.k AND a.row <= b.row",
    ],
    ids=["sort", "group", "join"],
)
def test_a_killed_query_leaves_nothing(tmp_path, sql):
    path = tmp_path / "db"
    table = pa.table({"k": [i * 7 % 10_007 for i in range(10_000)], "row": range(10_000)})
    with bamquery.connect(path, device="cpu") as connection:
        connection.load("t", table)
    before = sorted(path.rglob("*"))
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), sql], capture_output=True, text=True, timeout=120
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert sorted(path.rglob("*")) == before
    with bamquery.connect(path, device="cpu") as connection:
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(10_000,)]
        assert connection.sql(sql).to_arrow().num_rows == 10_000
    assert sorted(path.rglob("*")) == before
