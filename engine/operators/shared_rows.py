"""Rows that several operators read, computed once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.spill_files import SpillFile
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile


class SharedRows(Generic[Frame]):
    """All rows of an operator, computed when the first reader asks for one, and kept until the last is done.

    They are kept in memory as long as they fit `memory_limit`, then in a file. No reader waits for another
    one: each reads at its own pace, from the first row on.

    Attributes:
        number: tells those of one query apart, from 1.
    """

    def __init__(self, operator: Operator[Frame], number: int) -> None:
        self.operator = operator
        self.number = number
        self._readers = 0
        self._held: list[Frame] | None = None
        self._memory: Reservation | None = None
        self._file: SpillFile[Frame] | None = None

    def scan(self) -> SharedScan[Frame]:
        """One more reader; the first one has the operator below it."""
        self._readers += 1
        return SharedScan(self, first=self._readers == 1)

    def fill(self, context: ExecutionContext[Frame], profile: OperatorProfile) -> None:
        """Compute the rows, unless that has been done; files count for that profile.

        Raises:
            MemoryLimitError: there is nowhere to keep what does not fit.
            StorageError: the folder has no room for it.
        """
        if self._held is not None:
            return
        self._held = []
        context.at_end.callback(self._release)  # a reader may never begin
        self._memory = context.memory.reservation("WITH")
        size = 0
        with closing(self.operator.frames(context)) as frames:
            for frame in frames:
                size += context.device.nbytes(frame)
                if self._file is None and not self._memory.fits(size):
                    folder = context.spill_folder
                    if folder is None:
                        self._memory.resize(size)
                    assert folder is not None  # resize has said why not
                    self._file = SpillFile(context.device, folder, self.operator.fields, profile)
                    for held in self._held:
                        self._file.write(held)
                    self._held.clear()
                    self._memory.resize(0)
                if self._file is None:
                    self._held.append(frame)
                else:
                    self._file.write(frame)

    def frames(self) -> Generator[Frame, None, None]:
        """The rows, once they have been computed."""
        assert self._held is not None
        yield from self._held if self._file is None else self._file.frames()

    def release_reader(self) -> None:
        """A reader wants no more."""
        self._readers -= 1
        if not self._readers:
            self._release()

    def _release(self) -> None:
        self._held = []
        if self._file is not None:
            self._file.close()
        if self._memory is not None:
            self._memory.close()
            self._memory = None


class SharedScan(Operator[Frame], Generic[Frame]):
    """Reads rows that other operators of the plan read, too.

    Conditions that are known late stay here: the other readers may want the rows.
    """

    def __init__(self, rows: SharedRows[Frame], *, first: bool) -> None:
        below = (rows.operator,) if first else ()
        details: dict[str, object] = (
            {"number": rows.number} if first else {"rows": f"of number {rows.number}"}
        )
        super().__init__(rows.operator.fields, below, OperatorProfile("Shared", details))
        self.reservations = 1 if first else 0
        self._rows = rows

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The frames, once all are there."""
        before = self._rows.operator._total_seconds
        try:
            self._rows.fill(context, self.profile)
            if not self.children:  # what was spent below is shown there
                self.profile.seconds -= self._rows.operator._total_seconds - before
            for frame in self._rows.frames():
                context.check_cancelled()
                yield frame
        finally:
            self._rows.release_reader()
