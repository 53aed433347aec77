"""The terminal as it was, however the shell is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prompt_toolkit.application import Application


@contextmanager
def left_tidily(application: Application[Any]) -> Iterator[None]:
    """Around its run: a signal that ends the process is a SystemExit in the middle of it."""
    try:
        yield
    except SystemExit:
        with suppress(OSError):  # the terminal has gone
            application.renderer.reset(leave_alternate_screen=True)
            application.output.flush()
        raise
