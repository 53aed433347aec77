"""WITH RECURSIVE without operators, while steps are small: many steps for each frame that is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from typing import ClassVar, Generic

from bamquery.closeable import Closeable
from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.plan.nodes import Field

_MORE_ROWS = 8
"""Times that a frame has more rows than the one before: who wants few rows does not wait for many."""


class SmallRecursion(Closeable, ABC, Generic[Frame]):
    """The steps of a recursive query until one is large, or is not for this form; then others go on.

    A context manager that gives back the memory that it holds.

    Attributes:
        form: what a profile calls steps of this form.
        frame_rows: rows for which a frame is made.
        steps: how many were computed.
        rows: how many rows they gave.
        last_rows: how many the last one gave; 0 where there will be no more.
    """

    form: ClassVar[str]
    frame_rows: ClassVar[int]

    def __init__(
        self, context: ExecutionContext[Frame], fields: tuple[Field, ...], *, distinct: bool
    ) -> None:
        """`distinct`: no row is given twice."""
        self._context = context
        self._fields = fields
        self._distinct = distinct
        self._memory = context.memory.reservation("WITH RECURSIVE", spare=True)
        self._waiting_rows = 0
        self.steps = self.rows = self.last_rows = 0

    @abstractmethod
    def begin(self, frames: Iterator[Frame], known: Iterable[Frame] | None) -> bool:
        """Take the last step's rows, and read what the step joins; False: all of it is not for this form.

        `known`: with `distinct` the different rows so far; None: there are no others than the last step's.

        Raises:
            BamQueryError: what the step joins cannot be read.
        """

    def frames(self) -> Generator[Frame, None, None]:
        """Rows of one step after the other, as far as it goes.

        Raises:
            CancelledError: the query is.
        """
        wanted = 1
        while self.last_rows and self._memory.fits(self._bytes(wanted)):
            self._context.check_cancelled()
            goes_on = True
            while self.last_rows and goes_on and self._waiting_rows < wanted:
                goes_on = self._advance()
            if self._waiting_rows:
                yield self._take_waiting()
                self._waiting_rows = 0
            if not goes_on:
                return
            wanted = min(_MORE_ROWS * wanted, self.frame_rows)

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()

    def _count_step(self, rows: int) -> None:
        """A step was computed and gave so many rows, which wait."""
        self.steps += 1
        self.last_rows = rows
        self.rows += rows
        self._waiting_rows += rows

    @abstractmethod
    def last_frame(self) -> Frame:
        """The last step's rows, of which there are some, for who goes on."""

    @abstractmethod
    def take_distinct_rows(self) -> Generator[Frame, None, None]:
        """With `distinct` the different rows so far, the first part's too; they are let go of."""

    @abstractmethod
    def _advance(self) -> bool:
        """One step, which is counted; False: it is not for this form, and nothing of it is kept."""

    @abstractmethod
    def _take_waiting(self) -> Frame:
        """The rows that wait, of which there are some."""

    @abstractmethod
    def _bytes(self, waiting: int) -> int:
        """Memory for what is kept at most until so many rows wait."""
