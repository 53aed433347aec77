"""How far a query is: never backwards, never all before the end, and honest about what nobody knows."""

import pyarrow as pa
import pytest
from pyarrow import parquet

import bamquery
from bamquery.session.query_progress import QueryProgress
from tests.unit.face.progress.gates import BATCHES, ROWS, Gate, Taking


def steps(result):
    """The progress after each batch of a run, and at its end."""
    seen = [result.progress()]
    for _ in result:
        seen.append(result.progress())
    return [*seen, result.progress()]


def in_order(seen):
    fractions = [one.fraction for one in seen]
    assert fractions == sorted(fractions)
    assert all(fraction < 1 for fraction in fractions[:-1])
    assert fractions[-1] == 1
    assert [one.rows for one in seen] == sorted(one.rows for one in seen)


def test_a_scan_from_nothing_to_all(filled):
    with bamquery.connect(filled, threads=1, device="cpu") as con:
        result = con.sql("SELECT * FROM numbers WHERE position % 3 = 0").run()
        seen = steps(result)
    assert seen[0] == QueryProgress(seen[0].query, 0.0, 0, 30_000, 0.0, 0, "cpu")
    assert seen[0].bytes_per_second is None
    assert len({one.fraction for one in seen}) > 3
    in_order(seen)
    last = seen[-1]
    assert (last.rows, last.total_rows, last.finished, last.remaining) == (30_000, 30_000, True, 0.0)
    assert last.bytes_read == result.profile.io.bytes_read > 0
    assert last.bytes_per_second == pytest.approx(last.bytes_read / last.seconds)


def test_both_sides_of_a_join(filled):
    with bamquery.connect(filled, threads=1, device="cpu") as con:
        result = con.sql("SELECT * FROM numbers a JOIN numbers b ON a.position = b.position").run()
        first = next(result)
        assert first.num_rows
        held = result.progress()
        rest = steps(result)
    assert held.total_rows == 60_000
    assert held.rows > 30_000
    assert 0.5 < held.fraction < 1
    in_order([held, *rest])


def test_work_after_the_last_row_was_read(con):
    result = con.sql("SELECT x FROM range(100000) r(x) ORDER BY x % 1000").run()
    next(result)
    progress = result.progress()
    assert progress.all_read
    assert not progress.finished
    assert progress.fraction == 0.99
    assert progress.remaining is None
    assert "all rows read" in str(progress)
    assert steps(result)[-1].fraction == 1


def test_series(con):
    con.set("threads", 1)
    result = con.sql("SELECT x + 1 FROM range(3000000) r(x)").run()
    seen = steps(result)
    in_order(seen)
    assert len({one.fraction for one in seen}) > 3
    assert seen[-1].total_rows == 3_000_000


def test_files_tell_rows_or_bytes(con, tmp_path):
    table = pa.table({"x": range(400_000)})
    parquet.write_table(table, tmp_path / "x.parquet")
    with pa.ipc.new_stream(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=50_000)
    con.set("threads", 1)
    rows = con.sql(f"SELECT x FROM '{tmp_path}/x.parquet'").run()
    seen = steps(rows)
    assert seen[0].total_rows == 400_000
    in_order(seen)
    text = con.sql(f"SELECT x FROM '{tmp_path}/x.arrow'").run()
    seen = steps(text)
    assert seen[0].total_rows is None
    in_order(seen)
    assert seen[-1].bytes_read == pytest.approx((tmp_path / "x.arrow").stat().st_size, rel=0.001)


def test_what_cannot_be_known(con):
    gate = Gate(con)
    stream = con.sql("SELECT x FROM gated").run()
    taking = Taking(stream)
    gate.wait()
    gate.open(1)
    gate.wait()
    progress = stream.progress()
    assert (progress.rows, progress.total_rows, progress.fraction, progress.remaining) == (
        ROWS,
        None,
        None,
        None,
    )
    gate.open()
    taking.finish()
    assert taking.rows == BATCHES * ROWS
    assert stream.progress().fraction == 1
    recursive = con.sql(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT * FROM t"
    ).run()
    assert recursive.progress().fraction is None
    assert steps(recursive)[-1].fraction == 1


def test_a_failed_query_is_not_finished(con):
    result = con.sql("SELECT CAST(x::VARCHAR || 'a' AS INTEGER) FROM range(10) r(x)").run()
    with pytest.raises(bamquery.ExecutionError):
        next(result)
    progress = result.progress()
    assert not progress.finished
    assert progress.fraction < 1
    assert result.progress() == progress  # its clock has stopped


def progress(**changes):
    figures = {
        "query": 1,
        "seconds": 2.0,
        "rows": 25,
        "total_rows": 100,
        "fraction": 0.25,
        "bytes_read": 4000,
        "device": "cpu",
    }
    return QueryProgress(**figures | changes)


def test_figures():
    assert progress().remaining == 6.0
    assert progress().bytes_per_second == 2000
    assert str(progress()) == "25 %, 25 of 100 rows, 3.9 KiB, 2 kB/s, cpu, 6 s left"
    assert progress(fraction=0.001).remaining is None
    assert progress(fraction=None, total_rows=None).remaining is None
    assert str(progress(fraction=None, total_rows=None, bytes_read=0)) == "25 rows, cpu"
    assert str(progress(seconds=400.0)) == "25 %, 25 of 100 rows, 3.9 KiB, 10 B/s, cpu, 20 min 0 s left"
