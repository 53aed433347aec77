"""Ctrl-C in the middle of a load, as a user presses it: SIGINT to a process of its own."""

import os
import random
import signal
import statistics
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from bamquery.storage.database.database import Database
from bamquery.storage.ingest.benchmark import write_trips
from bamquery.storage.ingest.ingest import ingest
from bamquery.storage.ingest.opening import open_source

DEADLINE = 60
TIMES = 100  # each file is loaded so many times over: far more than the test lets happen

ENCODED = {"parquet", "stream"}
"""Of the table that is loaded into, columns are packed."""

CHILD = """
import itertools, sys
from contextlib import contextmanager
import pyarrow as pa
from bamquery.storage.database.database import Database
from bamquery.storage.ingest.ingest import ingest
from bamquery.storage.ingest.opening import open_source

database, kind, path, times = sys.argv[1:]

class Tell:
    @contextmanager
    def show(self, *args):
        yield lambda rows, size: print(rows, flush=True)

try:
    what = path
    if kind == "looking":
        print(1, flush=True)
    elif kind == "stream":
        batch = pa.record_batch({"n": range(100_000), "x": [0.5] * 100_000})
        what = pa.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch))
    else:
        what = [path] * int(times)
    with Database.open(database) as opened, opened.table("t").append() as writer:
        ingest(writer, open_source(what), Tell())
        writer.commit()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    path = tmp_path_factory.mktemp("trips") / "trips.parquet"
    write_trips(path, 300_000)
    return path


@pytest.fixture(scope="module")
def csv(trips):
    path = trips.with_suffix(".csv")
    pa.csv.write_csv(pa.parquet.read_table(trips), path)
    return path


@pytest.fixture(scope="module")
def large_csv(csv):
    """Large enough that looking through it takes longer than the key is waited for."""
    path = csv.with_name("large.csv")
    header, rows = csv.read_bytes().split(b"\n", 1)
    with path.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(8):
            file.write(rows)
    return path


def interrupt(folder, kind, source, path, after_rows):
    """Load in a child, press Ctrl-C once so many rows were read; how long it took to end."""
    database = folder / "db"
    with Database.open(database) as opened:
        encoding = "auto" if kind in ENCODED else "plain"
        with opened.create_table("t", source.schema, encoding=encoding) as writer:
            ingest(writer, source)
            writer.commit()
        rows = opened.table("t").snapshot().rows
    files = sorted(database.rglob("*"))
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(database), kind, str(path), str(TIMES)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in child.stdout:
            if int(line) >= after_rows:
                break
        time.sleep(random.uniform(0, 0.3))
        child.send_signal(signal.SIGINT)
        start = time.monotonic()
        _, errors = child.communicate(timeout=DEADLINE)
        seconds = time.monotonic() - start
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 130, errors
    assert errors == ""
    with Database.open(database) as opened:
        assert opened.table("t").snapshot().rows == rows
        opened.vacuum()
        assert not opened.check().errors
    assert sorted(database.rglob("*")) == files
    return seconds


CASES = ["parquet", "csv", "looking", "stream"]


@pytest.fixture
def press(request, tmp_path, trips, csv):
    def press(kind, number, after_rows):
        path = {"parquet": trips, "csv": csv}.get(kind, csv)
        if kind == "looking":
            path = request.getfixturevalue("large_csv")
        what = pa.table({"n": [1], "x": [0.5]}) if kind == "stream" else path
        source = open_source(csv if kind == "looking" else what)
        folder = tmp_path / str(number)
        folder.mkdir()
        return interrupt(folder, kind, source, path, after_rows)

    return press


@pytest.mark.parametrize("kind", CASES)
def test_ctrl_c_leaves_the_last_commit_and_no_litter(press, kind):
    press(kind, 0, after_rows=1)


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.slow
def test_ctrl_c_returns_within_a_second(press, kind):
    """At ten random moments, among them while fragments are written and synced. Alone on the machine."""
    seconds = [
        press(kind, number, random.choice([1, 1_000_000, 3_000_000]) if kind != "looking" else 1)
        for number in range(10)
    ]
    assert statistics.median(seconds) < 1
    assert os.getloadavg()[0] > 2 * os.cpu_count() or max(seconds) < 1.5
