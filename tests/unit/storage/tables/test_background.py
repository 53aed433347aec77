import threading

import pytest

from bamquery.errors import CancelledError, StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.fragments.writer import BatchRows
from bamquery.storage.tables import transaction as transaction_module
from bamquery.storage.tables.background import BackgroundTransaction
from bamquery.storage.tables.folder import pin_latest
from bamquery.storage.tables.transaction import Transaction
from tests.unit.storage.sample_tables import SCHEMA, batch, create


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [0])
        yield database


@pytest.fixture
def background(database):
    table = database.table("t")
    transaction = Transaction(table.filesystem, table.folder, pin_latest(table.folder))
    background = BackgroundTransaction(transaction, SCHEMA)
    yield background
    background.abort()


def test_fragments_are_written_in_the_order_they_came(background):
    for number in range(5):
        background.write(BatchRows([batch([0] * (number + 1))]))
    background.settle()
    assert [entry.rows for entry in background.entries] == [1, 2, 3, 4, 5]
    assert background.publish("t", "append", background.entries) == 2


def test_a_failure_stays_after_write_and_passes_after_write_now(background, monkeypatch):
    def fail(*_, **__):
        raise StorageError("no")

    with monkeypatch.context() as patch:
        patch.setattr(transaction_module, "write_fragment", fail)
        with pytest.raises(StorageError):
            background.write_now(BatchRows([batch([1])]))
    background.write_now(BatchRows([batch([1])]))
    assert len(background.entries) == 1
    with monkeypatch.context() as patch:
        patch.setattr(transaction_module, "write_fragment", fail)
        background.write(BatchRows([batch([1])]))
        with pytest.raises(StorageError):
            background.settle()
    for action in (background.settle, lambda: background.publish("t", "append", background.entries)):
        with pytest.raises(StorageError, match="no"):
            action()


def test_work_in_hand_hears_of_an_abort(background, database, monkeypatch):
    begun, heard = threading.Event(), threading.Event()

    def write_fragment(*_, cancelled, encoding):
        begun.set()
        while not cancelled():
            pass
        heard.set()
        raise CancelledError("stopped")

    monkeypatch.setattr(transaction_module, "write_fragment", write_fragment)
    background.write(BatchRows([batch([1])]))
    assert begun.wait(30)
    assert not background.is_cancelled()
    background.abort()
    assert background.is_cancelled()
    assert heard.wait(30)
    with pytest.raises(StorageError, match="closed"):
        background.write(BatchRows([batch([1])]))
    assert database.vacuum().in_use == []
