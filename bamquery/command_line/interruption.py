"""Ctrl-C while a command runs, which must not be lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final


class Interruption:
    """Ctrl-C, noted when it comes.

    Modules that are compiled may swallow its exception while they are imported, or raise another one instead.
    """

    noted = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Of the signal, instead of Python's own handler.

        Raises:
            KeyboardInterrupt: always.
        """
        del number, frame
        self.noted = True
        raise KeyboardInterrupt

    def check(self) -> None:
        """Stop here where it came and its exception was lost.

        Raises:
            KeyboardInterrupt: it came.
        """
        if self.noted:
            raise KeyboardInterrupt


INTERRUPTION: Final = Interruption()
"""Of this process."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends what runs within, also where an exception of it was lost."""
    import pyarrow as pa  # noqa: PLC0415

    from bamquery.statement_context.cancellation import add_cancellation_check  # noqa: PLC0415

    # Arrow's own handler, there while it reads a CSV file, now and then loses a Ctrl-C; Python's does not.
    pa.enable_signal_handlers(False)
    with add_cancellation_check(INTERRUPTION.check):
        yield
