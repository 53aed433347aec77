"""Queries that stand still where a test wants them to."""

import threading
from collections.abc import Iterator

import pyarrow as pa

from bamquery import Connection, Result

BATCHES = 8
ROWS = 1000


class Gate:
    """A source `gated` of `BATCHES` batches: `passed` says how many have left it, `open` lets more go."""

    def __init__(self, connection: Connection) -> None:
        self._permits = threading.Semaphore(0)
        self.reached = threading.Semaphore(0)
        schema = pa.schema([("x", pa.int64())])
        connection.register("gated", pa.RecordBatchReader.from_batches(schema, self._batches(schema)))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for start in range(0, BATCHES * ROWS, ROWS):
            self.reached.release()
            assert self._permits.acquire(timeout=60)
            yield pa.record_batch([pa.array(range(start, start + ROWS))], schema=schema)

    def open(self, batches: int = BATCHES) -> None:
        for _ in range(batches):
            self._permits.release()

    def wait(self) -> None:
        """Until the query asks for another batch."""
        assert self.reached.acquire(timeout=60)


class Taking(threading.Thread):
    """Takes all rows of a result, or keeps the error."""

    def __init__(self, result: Result) -> None:
        super().__init__(daemon=True)
        self._result = result
        self.rows = 0
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            with self._result as result:
                self.rows = sum(batch.num_rows for batch in result)
        except BaseException as error:
            self.error = error

    def finish(self) -> None:
        self.join(60)
        assert not self.is_alive()
