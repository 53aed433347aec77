import threading

import pytest

from bamquery.errors import CancelledError, StorageError
from bamquery.statement_context.cancellation import use_cancellation_check
from bamquery.storage.database.database import Database
from bamquery.storage.fragments.encoded_columns import EncodedRows
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


class StuckRows:
    """Rows that come once the test lets them."""

    rows = 1

    def __init__(self):
        self.asked, self.go_on, self.given = threading.Event(), threading.Event(), threading.Event()

    def column(self, index):
        self.asked.set()
        self.go_on.wait(20)
        self.given.set()
        yield batch([1]).column(index)


@pytest.mark.parametrize("encoding", ["plain", "auto"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("action", ["write", "finish_fragment", "settle"])
def test_who_waits_for_rows_hears_that_its_statement_was_cancelled(background, encoding, threads, action):
    background.transaction.encoding = encoding
    background.use_threads(threads)
    stuck, cancelled = StuckRows(), threading.Event()

    def check():
        if cancelled.is_set():
            raise CancelledError("stopped")

    background.write(stuck)
    assert stuck.asked.wait(30)
    cancelled.set()
    actions = {
        "write": lambda: background.write(BatchRows([batch([1])])),
        "finish_fragment": background.finish_fragment,
        "settle": background.settle,
    }
    with use_cancellation_check(check), pytest.raises(CancelledError):
        actions[action]()
    assert not stuck.given.is_set()
    stuck.go_on.set()


def test_who_waits_to_write_hears_of_an_abort(background, monkeypatch):
    """The thread that leads those that encode, which has a fragment for the one that writes."""
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def write_fragment(*_, cancelled, encoding):
        begun.set()
        go_on.wait(20)
        ended.set()
        raise CancelledError("stopped")

    monkeypatch.setattr(transaction_module, "write_fragment", write_fragment)
    background.transaction.encoding = "auto"
    background.use_threads(2)
    background.write(BatchRows([batch([1])]))  # of no bytes: a fragment as soon as it is encoded
    assert begun.wait(30)
    real, closed = EncodedRows.close, threading.Event()

    def close(self, *arguments):
        real(self, *arguments)
        closed.set()

    monkeypatch.setattr(EncodedRows, "close", close)
    background.write(BatchRows([batch([2])]))
    waiting = background._pending
    assert closed.wait(30)
    background.abort()
    with pytest.raises(CancelledError):
        waiting.result(10)
    assert not ended.is_set()
    go_on.set()
