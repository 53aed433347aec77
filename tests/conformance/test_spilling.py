"""Queries that may hold little: answers as DuckDB's, by way of files of which nothing is left."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.engine.device import Device
from bamquery.engine.execution import spill_files as spill
from bamquery.engine.operators.aggregate import group_states
from bamquery.engine.operators.aggregate import state_partitions as state_parts
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.engine.operators.join.pairs import JoinPairFinder
from bamquery.engine.operators.scan import chunks as scan_chunks
from bamquery.errors import CancelledError, MemoryLimitError, StorageError, UnsupportedError
from tests.values import plain, same

ROWS = 4000
LIMIT = 90_000


def _table() -> pa.Table:
    random = np.random.default_rng(3)
    wide = random.integers(0, 4000, ROWS)
    narrow = random.integers(0, 7, ROWS)
    doubles = random.integers(-40, 40, ROWS) / 8
    return pa.table(
        {
            "row": pa.array(np.arange(ROWS)),
            "wide": pa.array(wide, mask=wide % 50 == 0),
            "narrow": pa.array(narrow, mask=narrow == 3),
            "text": pa.array([f"text {value}" for value in wide], mask=wide % 31 == 0),
            "word": pa.array([f"word {value}" for value in narrow]).dictionary_encode(),
            "x": pa.array(np.where(doubles == 1.0, np.nan, doubles), mask=doubles == 2.0),
            "cents": pa.array(random.integers(-(10**6), 10**6, ROWS)).cast(pa.decimal128(19, 0)),
        }
    )


def _other() -> pa.Table:
    random = np.random.default_rng(4)
    return pa.table(
        {
            "key": pa.array(random.integers(0, 4000, 2000)),
            "text": pa.array([f"text {value}" for value in random.integers(0, 4000, 2000)]),
            "place": pa.array(random.permutation(2000)),
        }
    )


TABLES = {"t": _table(), "o": _other()}
QUERIES = {
    "every aggregate that is made of parts": """SELECT wide, count(*), count(x), sum(row), sum(cents),
        avg(row), min(x), max(text), min(cents), bool_or(row > 9), first(row), last(row), any_value(narrow),
        max(word), stddev_samp(row) FROM t GROUP BY wide""",
    "a key of text": "SELECT text, count(*), sum(x) FILTER (narrow > 2) FROM t GROUP BY text",
    "several keys": "SELECT text, word, narrow, min(row), max(x) FROM t GROUP BY ALL",
    "a key of doubles": "SELECT x + wide AS k, count(*) FROM t GROUP BY k",
    "an argument of extremes": "SELECT wide, arg_max(text, row), arg_min(x, row) FROM t GROUP BY wide",
    "aggregates that keep values": """SELECT wide, median(row), quantile_disc(x, 0.3),
        mode(narrow ORDER BY row), string_agg(text, '-' ORDER BY row), last(text ORDER BY row)
        FROM t WHERE row % 5 < 2 GROUP BY wide""",
    "values of one group": "SELECT median(row), mad(x), mode(text), entropy(wide) FROM t",
    "groups of long texts": "SELECT repeat(text, 60) AS long, narrow, count(*) FROM t GROUP BY ALL",
    "distinct rows": "SELECT DISTINCT wide, narrow, text FROM t",
    "distinct on": "SELECT DISTINCT ON (wide) wide, row FROM t ORDER BY wide, row DESC",
    "distinct arguments": """SELECT narrow, count(DISTINCT wide), sum(DISTINCT cents), count(*)
        FROM t GROUP BY narrow""",
    "distinct arguments of many groups": """SELECT wide, count(DISTINCT narrow), count(DISTINCT text), avg(x)
        FROM t GROUP BY wide""",
    "distinct arguments of all rows": "SELECT count(DISTINCT text), count(DISTINCT row) FROM t",
    "grouping sets": """SELECT wide, narrow, GROUPING(wide, narrow), count(*), sum(row)
        FROM t WHERE 2000 > row GROUP BY CUBE (wide, narrow)""",
    "union": "SELECT wide, text FROM t UNION SELECT key, text FROM o",
    "intersect all": "SELECT text FROM t INTERSECT ALL SELECT text FROM o",
    "except": "SELECT wide FROM t EXCEPT SELECT key FROM o",
    "in": "SELECT row FROM t WHERE text IN (SELECT text FROM o)",
    "not in": "SELECT row FROM t WHERE wide NOT IN (SELECT key FROM o)",
    "in or not": "SELECT row, wide IN (SELECT key FROM o) FROM t",
    "in or not known": "SELECT row, wide IN (SELECT wide FROM t WHERE row % 2 = 0) FROM t",
    "exists": "SELECT key FROM o WHERE NOT EXISTS (FROM t WHERE t.text = o.text)",
    "order": "SELECT wide, text, row FROM t ORDER BY x DESC NULLS FIRST, text, row",
    "many first rows": "SELECT wide, word, row FROM t ORDER BY wide NULLS LAST, row LIMIT 2000 OFFSET 10",
    "a window": """SELECT text, row, sum(row) OVER (PARTITION BY row % 1000 ORDER BY row),
        row_number() OVER (PARTITION BY row % 1000 ORDER BY row) FROM t""",
    "a window of larger partitions": """SELECT word, wide, row,
        lag(row) OVER (PARTITION BY coalesce(wide, row) % 200 ORDER BY row) FROM t""",
    "a window over all rows": """SELECT text, row, sum(cents) OVER (ORDER BY row), lag(x) OVER (ORDER BY row),
        cume_dist() OVER (ORDER BY row) FROM t""",
    "asof": "SELECT row, place, o.text FROM (FROM t WHERE row < 1500) AS t ASOF JOIN o ON t.row >= o.place",
    "asof with a key": """SELECT row, key, place FROM (FROM t WHERE row < 1500) AS t ASOF LEFT JOIN o
        ON t.wide = o.key AND t.row < o.place""",
    "asof with a key of text": """SELECT row, place, word FROM (FROM t WHERE row < 1500) AS t ASOF LEFT JOIN o
        ON t.text = o.text AND t.row >= o.place""",
    **{
        f"{kind} join without keys": f"""SELECT t.row, o.place FROM (SELECT * FROM t WHERE 1500 > row) AS t
            {kind} JOIN o ON t.row BETWEEN o.place - 2 AND o.place AND t.wide > o.key"""
        for kind in ("", "LEFT", "RIGHT", "FULL")
    },
    "semi join without keys": """SELECT row FROM t WHERE 1500 > row
        AND EXISTS (SELECT * FROM o WHERE o.key > t.wide + 1000 AND o.place < t.row)""",
    "anti join without keys": """SELECT row FROM t WHERE 1500 > row
        AND NOT EXISTS (SELECT * FROM o WHERE o.key > t.wide + 1000 AND o.place < t.row)""",
    "mark without keys": """SELECT row, (wide > ANY (SELECT key FROM o)) AS m FROM t WHERE 2000 > row""",
    "rows of one key": """SELECT count(*), sum(a.row - b.row) FROM t AS a
        JOIN (SELECT * FROM t WHERE 2000 > row) AS b ON a.row * 0 = b.row * 0 AND a.row < b.row - 1500""",
    "recursive": """WITH RECURSIVE r AS (SELECT row, wide, text, word FROM t
        UNION ALL SELECT row + 4000, wide + 1, text, word FROM r WHERE row < 8000) FROM r""",
    "recursive with itself": """WITH RECURSIVE r AS (SELECT row, text FROM t UNION ALL
        SELECT a.row + 10000, b.text FROM r AS a JOIN r AS b ON a.row = b.row + 1 WHERE a.row < 30000)
        FROM r""",
    "recursive without a key": """WITH RECURSIVE r AS (SELECT row, 1 AS step FROM t UNION ALL
        SELECT o.key, r.step + 1 FROM r JOIN o ON r.row BETWEEN o.place - 1 AND o.place AND r.step < 3)
        FROM r""",
    "recursive with groups": """WITH RECURSIVE r AS (SELECT row AS n, text FROM t UNION ALL
        SELECT n // 2 + 1, max(text) FROM r WHERE n > 200 GROUP BY ALL) FROM r""",
    "recursive within a recursive one": """WITH RECURSIVE r AS (SELECT row AS n, text FROM t UNION ALL
        SELECT n + 5000, text FROM (WITH RECURSIVE s AS (SELECT n, text, 1 AS k FROM r WHERE n < 12000
        UNION ALL SELECT n, text, k + 1 FROM s WHERE k < 2) FROM s)) FROM r""",
    "recursive once each": """WITH RECURSIVE r AS (SELECT row AS n, text, word FROM t WHERE 2000 > row
        UNION SELECT (7 * n + 3) % 6000, 'text ' || n % 50, word FROM r WHERE n % 3 = 1) FROM r""",
    "recursive once each of many": """WITH RECURSIVE r AS (SELECT row % 100 AS n, x FROM t
        UNION SELECT o.place // 20, CASE WHEN o.place % 5 = 0 THEN r.x ELSE o.place % 97 / 8 END
        FROM r JOIN o ON r.n = o.place % 100) FROM r""",
    "order over groups": "SELECT wide, sum(row) AS s FROM t GROUP BY wide ORDER BY s DESC, wide",
}
WAYS = {
    "passes": (
        2,
        (
            "order",
            "many first rows",
            "a window",
            "a window of larger partitions",
            "asof",
            "asof with a key",
            "asof with a key of text",
            "distinct on",
            "order over groups",
        ),
    ),
    "steps": (
        2,
        (
            "recursive",
            "recursive with itself",
            "recursive without a key",
            "recursive with groups",
            "recursive within a recursive one",
        ),
    ),
    "portions": (50, ("a window over all rows",)),
    "blocks": (3, (*(name for name in QUERIES if name.endswith("without keys")), "rows of one key")),
}
"""What some operator's profile says at least of how it went on, for which queries; for all others parts."""


def _way(name: str) -> tuple[str, int]:
    if name == "groups of long texts":
        return "partitions", 128  # partitions that are split again
    return next(((way, least) for way, (least, names) in WAYS.items() if name in names), ("partitions", 32))


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    rows = list(zip(*(plain(column) for column in table.columns), strict=True))
    return sorted(rows, key=repr)


def _assert_same(ours: pa.Table, theirs: pa.Table, *, ordered: bool) -> None:
    assert ours.num_rows == theirs.num_rows
    mine, others = (
        list(zip(*(plain(c) for c in table.columns), strict=True)) if ordered else _rows(table)
        for table in (ours, theirs)
    )
    for row, other in zip(mine, others, strict=True):
        assert all(same(a, b, 1e-9) for a, b in zip(row, other, strict=True)), (row, other)


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        yield connection


@pytest.fixture
def connection(
    tmp_path: Path, device: Device[Any], device_name: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connection]:
    monkeypatch.setattr(framing, "GATHERED_ROWS", 600 // device.task_size)
    for limit in ("FIRST_VECTORS", "CHUNK_VECTORS"):
        monkeypatch.setattr(scan_chunks, limit, 1)
    if device_name != "cpu":
        for limit in ("_FIRST_VECTORS", "_FIRST_ROWS", "_CHUNK_VECTORS"):
            monkeypatch.setattr(f"bamquery.engine.cuda.scan.scan.{limit}", 1)
    with bamquery.connect(tmp_path / "db", device=device_name, memory_limit=f"{LIMIT} B", threads=2) as found:
        for name, table in TABLES.items():
            found.load(name, table)
        yield found


LONG = (
    "groups of long texts",
    "recursive once each",
    "recursive with itself",
    "asof with a key of text",
    "recursive once each of many",
    "recursive within a recursive one",
)


def _marked(name: str, *, long: bool) -> Any:
    return pytest.param(name, marks=pytest.mark.slow) if long else name


@pytest.mark.parametrize("name", [_marked(name, long=name in LONG) for name in QUERIES])
def test_answers(
    connection: Connection, oracle: duckdb.DuckDBPyConnection, name: str, tmp_path: Path
) -> None:
    sql = QUERIES[name]
    before = sorted((tmp_path / "db").rglob("*"))
    relation = connection.sql(sql)
    try:
        ours = relation.to_arrow()
    except UnsupportedError as reason:
        pytest.skip(str(reason))
    _assert_same(ours, oracle.sql(sql).to_arrow_table(), ordered="ORDER BY" in sql.rsplit(")", 1)[-1])
    way, least = _way(name)
    assert max(part.details.get(way, 0) for part in relation.profile.root.walk()) >= least
    assert relation.profile.spilled > 0
    assert relation.profile.peak_memory <= LIMIT
    assert sorted((tmp_path / "db").rglob("*")) == before


def test_explain_says_that_files_were_written(connection: Connection) -> None:
    assert "files that did not fit" in connection.sql(QUERIES["distinct rows"]).explain(analyze=True)


@pytest.mark.parametrize("limit", [f"{LIMIT} B", "1 GiB"])
@pytest.mark.parametrize(
    "name", ["every aggregate that is made of parts", _marked("several keys", long=True), "distinct rows"]
)
def test_groups_in_places(
    connection: Connection,
    oracle: duckdb.DuckDBPyConnection,
    device: Device[Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    name: str,
    limit: str,
) -> None:
    """Few groups make a place, of a part that is read back and of all that are in memory."""
    for module in (state_parts, group_states):
        monkeypatch.setattr(module, "PLACE_GROUPS", 8)
    for least in ("_PENDING_GROUPS", "_SPLIT_GROUPS"):
        monkeypatch.setattr(group_states, least, 300 // device.task_size)
    connection.sql(f"SET memory_limit = '{limit}'")
    relation = connection.sql(QUERIES[name])
    _assert_same(relation.to_arrow(), oracle.sql(QUERIES[name]).to_arrow_table(), ordered=False)
    assert (relation.profile.spilled > 0) == (limit != "1 GiB")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT string_agg(text, '-'), median(row) FROM t",
        "SELECT row >= 0 AS k, string_agg(text, '-') FROM t GROUP BY k",
        "SELECT narrow > 3 AS k, string_agg(DISTINCT text || text, '-') FROM t GROUP BY k",
        "SELECT string_agg(text, '-'), mode(text) FROM t",
    ],
)
def test_joined_texts_of_one_group_that_are_too_many(connection: Connection, sql: str) -> None:
    with pytest.raises(
        MemoryLimitError, match=r"string_agg\(\) needs .* memory_limit is 87\.9 KiB.*SET memory_"
    ):
        connection.sql(sql).to_arrow()


_SPLIT = 4 * 64  # a chunk is written in 64 parts at most; two threads have one each, one more waits
_FEW = 12
STOPPED = {
    "several keys": _SPLIT,
    "groups of long texts": _SPLIT,
    "distinct arguments": _SPLIT,
    "values of one group": _SPLIT,
    "in": _SPLIT,
    "order": _FEW,
    "a window": _FEW,
    "a window over all rows": _FEW,
    "asof with a key": _FEW,
    "FULL join without keys": _FEW,
    "rows of one key": _FEW,
    "recursive": _FEW,
    "recursive once each": _SPLIT,
}
"""A query of each operator that goes on by files, and of each way that it does.

With it, most steps (a batch written or read, a look at pairs) after a cancel.
"""


@pytest.mark.parametrize("name", STOPPED)
def test_a_full_disk(
    connection: Connection, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No place for a second file, none for more of one that is there: nothing is left, all works again."""
    before = sorted((tmp_path / "db").rglob("*"))
    written, made = spill.BatchFile.write_batch, tempfile.TemporaryFile
    calls: list[int] = []

    def full(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def second_file(**options: Any) -> Any:
        calls.append(1)
        return full() if len(calls) > 1 else made(**options)

    def third_batch(file: Any, batch: pa.RecordBatch) -> None:
        calls.append(1)
        if len(calls) > 2 and file._writer is not None:
            with file._failures():
                full()
        written(file, batch)

    for owner, name_there, failing in (
        (tempfile, "TemporaryFile", second_file),
        (spill.BatchFile, "write_batch", third_batch),
    ):
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(owner, name_there, failing)
            with pytest.raises((StorageError, UnsupportedError)) as caught:
                connection.sql(QUERIES[name]).to_arrow()
        if isinstance(caught.value, UnsupportedError):
            pytest.skip(str(caught.value))
        assert "SET memory_limit" in str(caught.value)
        assert _open_files(tmp_path / "db") == []
        assert sorted((tmp_path / "db").rglob("*")) == before
    assert connection.sql("SELECT count(*) FROM t").fetchall() == [(ROWS,)]


@pytest.mark.parametrize(
    ("name", "late"),
    [
        pytest.param(name, late, marks=[pytest.mark.slow] if late and STOPPED[name] == _SPLIT else [])
        for name in STOPPED
        for late in (False, True)
    ],
)
def test_cancelled_by_another_thread(
    connection: Connection,
    device: Device[Any],
    name: str,
    *,
    late: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No more than the chunks that threads have in hand come after it."""
    steps: list[int] = []
    step = 0 if late else 2
    relation = connection.sql(QUERIES[name])
    try:
        result = relation.run()
    except UnsupportedError as reason:
        pytest.skip(str(reason))

    def counted(work: Callable[..., Any]) -> Callable[..., Any]:
        def one(*arguments: Any) -> Any:
            steps.append(1)
            if len(steps) == step:
                canceller = threading.Thread(target=result.cancel)
                canceller.start()
                canceller.join()
            return work(*arguments)

        return one

    monkeypatch.setattr(spill.BatchFile, "write_batch", counted(spill.BatchFile.write_batch))
    monkeypatch.setattr(type(device), "from_arrow", counted(type(device).from_arrow))
    monkeypatch.setattr(JoinPairFinder, "pairs", counted(JoinPairFinder.pairs))
    if late:
        list(result)
        step = len(steps) // 2
        assert step > 2
        steps.clear()
        result = relation.run()
    with pytest.raises(CancelledError):
        list(result)
    assert step <= len(steps) <= step + STOPPED[name]
    assert _open_files(tmp_path / "db") == []


def _open_files(folder: Path) -> list[str]:
    """Files in a folder that have no name any more and are still open here."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            target = os.readlink(link)
            if target.startswith(f"{folder}/") and target.endswith(" (deleted)"):
                found.append(target)
    return found


@pytest.mark.parametrize("name", ["order", "rows of one key", "several keys"])
def test_two_at_once(
    connection: Connection, oracle: duckdb.DuckDBPyConnection, name: str, tmp_path: Path, device_name: str
) -> None:
    """Two connections to one database spill into the same folder, and do not meet."""
    with bamquery.connect(tmp_path / "db", device=device_name, memory_limit=f"{LIMIT} B", threads=2) as other:
        first, second = (iter(found.sql(QUERIES[name]).run()) for found in (connection, other))
        batches: tuple[list[pa.RecordBatch], ...] = ([], [])
        for pair in zip_longest(first, second):
            for kept, batch in zip(batches, pair, strict=True):
                kept.extend([batch] if batch is not None else [])
    theirs = oracle.sql(QUERIES[name]).to_arrow_table()
    for kept in batches:
        _assert_same(pa.Table.from_batches(kept), theirs, ordered=name == "order")
