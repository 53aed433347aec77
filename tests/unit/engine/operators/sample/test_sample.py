"""Which rows are drawn: as many as asked for, each as likely as another, the same ones with a seed."""

import numpy as np
import pyarrow as pa
import pytest

import bamquery

ROWS = 100_000


@pytest.fixture(scope="module")
def con():
    with bamquery.connect(device="cpu", threads=2) as connection:
        connection.load("t", pa.table({"i": np.arange(ROWS), "s": [f"s{i}" for i in range(ROWS)]}))
        yield connection


def drawn(con, sample, condition="TRUE"):
    """The rows' numbers, in the order in which they come."""
    table = con.sql(f"SELECT i, s FROM t TABLESAMPLE {sample} WHERE {condition}").to_arrow()
    values = table.column("i").to_numpy()
    assert table.column("s").to_pylist() == [f"s{i}" for i in values]
    assert np.all(np.diff(values) > 0)
    return values


@pytest.mark.parametrize("count", [1, 10, 1000, 50_000, ROWS - 1])
def test_a_number_of_rows_is_exact(con, count):
    values = drawn(con, f"{count} ROWS REPEATABLE (1)")
    assert len(values) == count
    assert np.array_equal(values, drawn(con, f"reservoir({count} ROWS) REPEATABLE (1)"))
    assert con.sql(f"SELECT count(*) FROM t TABLESAMPLE {count} ROWS").fetchall() == [(count,)]


def test_every_row_is_as_likely_as_another(con):
    counts = sum(
        np.histogram(drawn(con, f"2000 ROWS REPEATABLE ({seed})"), bins=10, range=(0, ROWS))[0]
        for seed in range(10)
    )
    assert counts.sum() == 20_000
    assert np.all(np.abs(counts - 2000) < 6 * np.sqrt(2000))


@pytest.mark.parametrize("share", [0.5, 10, 90])
def test_bernoulli_draws_each_row_for_itself(con, share):
    values = drawn(con, f"bernoulli({share}%) REPEATABLE (7)")
    expected = ROWS * share / 100
    assert abs(len(values) - expected) < 6 * np.sqrt(expected)
    assert np.array_equal(values, drawn(con, f"bernoulli({share}%) REPEATABLE (7)"))
    assert not np.array_equal(values, drawn(con, f"bernoulli({share}%) REPEATABLE (8)"))


def test_system_draws_runs(con):
    values = drawn(con, "system(50%) REPEATABLE (3)")
    runs, counts = np.unique(values // 1024, return_counts=True)
    assert 20 < len(runs) < 80
    assert set(counts) <= {1024, ROWS % 1024}


def test_without_a_seed_chance_decides(con):
    assert not np.array_equal(drawn(con, "bernoulli(10%)"), drawn(con, "bernoulli(10%)"))


def test_conditions_come_after_the_sample(con):
    assert len(drawn(con, "1000 ROWS REPEATABLE (1)", "i < 50000")) < 1000
    sampled = set(drawn(con, "1000 ROWS REPEATABLE (1)"))
    assert set(drawn(con, "1000 ROWS REPEATABLE (1)", "i < 50000")) == {i for i in sampled if i < 50_000}


def test_rows_without_columns(con):
    for count in (10, ROWS + 5):
        assert con.sql(f"SELECT count(*) FROM t USING SAMPLE {count} ROWS").fetchall() == [
            (min(count, ROWS),)
        ]
