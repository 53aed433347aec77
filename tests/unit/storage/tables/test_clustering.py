import numpy as np
import pytest

from bamquery.errors import CancelledError, MemoryLimitError
from bamquery.storage.database.database import Database
from bamquery.storage.tables import clustering
from bamquery.storage.tables.clustering import gathered_bytes, rows_a_fragment, sort_order
from bamquery.storage.tables.manifest import MAX_FRAGMENT_ROWS
from tests.unit.storage.sample_tables import append, create


@pytest.fixture
def fragments(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [5, None, 1])
        append(database, "t", [1, 7, None, 5])
        with database.table("t").snapshot() as snapshot:
            yield snapshot.fragments


def test_the_order_is_stable_and_nulls_come_last(fragments):
    order = sort_order(fragments, [0], 1 << 20, lambda: False)
    assert order.tolist() == [2, 3, 0, 6, 4, 1, 5]
    assert order.dtype == np.uint32


def test_sorting_can_be_cancelled_while_it_reads(fragments):
    with pytest.raises(CancelledError):
        sort_order(fragments, [0], 1 << 20, lambda: True)


def test_keys_that_do_not_fit(fragments):
    # 7 rows of 16 bytes, 56 bytes of values and 2 of validity
    sort_order(fragments, [0], 170, lambda: False)
    with pytest.raises(MemoryLimitError, match="170 bytes"):
        sort_order(fragments, [0], 169, lambda: False)


def test_rows_a_fragment_follow_the_limit(fragments, monkeypatch):
    monkeypatch.setattr(clustering, "_FEWEST_ROWS", 1)
    # 4 bytes a row of the table, then 8 a row of the fragment and twice the 58 / 7 bytes of its column
    assert rows_a_fragment(fragments, 28 + 5 * 25) == 5
    assert rows_a_fragment(fragments, 28 + 5 * 24) == 4
    assert rows_a_fragment(fragments, 0) == 1
    assert rows_a_fragment(fragments, 1 << 60) == MAX_FRAGMENT_ROWS


def test_what_is_gathered_follows_the_limit(fragments, monkeypatch):
    assert gathered_bytes(fragments, 5, 0) == 16 << 20
    monkeypatch.setattr(clustering, "_LEAST_BYTES", 1)
    # the two halves are pieces, and what they make
    assert gathered_bytes(fragments, 5, 28 + 5 * 8 + 100) == 50
    assert gathered_bytes(fragments, 5, 0) == 1
