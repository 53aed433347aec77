"""Threads share a connection, processes share a database, and nobody sees half a change."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa

import bamquery


def test_threads_that_ask_and_one_that_writes() -> None:
    with bamquery.connect(threads=2) as con:
        con.load("t", pa.table({"a": np.arange(10_000)}))
        problems: list[BaseException] = []
        done = threading.Event()

        def ask() -> None:
            try:
                while not done.is_set():
                    rows, total = con.sql("SELECT count(*), sum(a) FROM t WHERE a >= 0").fetchall()[0]
                    assert rows % 10_000 == 0
                    assert total == rows // 10_000 * sum(range(10_000))
            except BaseException as error:
                problems.append(error)

        readers = [threading.Thread(target=ask) for _ in range(3)]
        for reader in readers:
            reader.start()
        for _ in range(5):
            con.load("t", pa.table({"a": np.arange(10_000)}), if_exists="append")
            con.vacuum()
        con.optimize("t")
        done.set()
        for reader in readers:
            reader.join()
        assert problems == []
        assert con.sql("SELECT count(*) FROM t").fetchall() == [(60_000,)]


def test_writers_that_meet_get_an_error_or_their_rows() -> None:
    with bamquery.connect(threads=1) as con:
        con.sql("CREATE TABLE t AS SELECT -1 AS a")
        barrier = threading.Barrier(4)
        inserted: list[int] = []

        def write(number: int) -> None:
            barrier.wait()
            try:
                con.sql(f"INSERT INTO t SELECT {number}")
                inserted.append(number)
            except bamquery.ConflictError:
                pass

        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert inserted
        assert sorted(con.table("t").fetchall()) == [(-1,), *((number,) for number in sorted(inserted))]


_OTHER = """
import sys, bamquery
with bamquery.connect(sys.argv[1]) as con:
    held = con.table("t")
    print("ready", flush=True)
    sys.stdin.readline()
    print(held.fetchall(), con.table("t").fetchall(), flush=True)
    con.sql("INSERT INTO t SELECT 3")
"""


def test_another_process_keeps_its_version(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with bamquery.connect(path) as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
        other = subprocess.Popen(
            [sys.executable, "-c", _OTHER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        con.sql("CREATE OR REPLACE TABLE t AS SELECT 2 AS a")
        assert con.vacuum().in_use == ["t"]
        answer, _ = other.communicate("\n")
        assert answer == "[(1,)] [(2,)]\n"
        assert other.returncode == 0
        assert con.table("t").fetchall() == [(2,), (3,)]
        con.vacuum()
        assert con.vacuum().in_use == []
        assert con.check().litter == []
