"""The database, opened on a thread while the first statement is typed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from bamquery.errors import BamQueryError

if TYPE_CHECKING:
    from bamquery.connection.connection import Connection

_PATIENCE: Final = 0.1
"""Seconds between two looks at a thread, so that Ctrl-C is heard."""
_LONGEST: Final = 300.0
"""Seconds that leaving waits for a thread that is still opening."""


class Opening:
    """One database on its way to a connection.

    Attributes:
        database: its path, as the user wrote it.
    """

    def __init__(self, database: str, settings: Mapping[str, object]) -> None:
        """Not begun before `start`."""
        self.database = database
        self._settings = dict(settings)
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._failure: BamQueryError | None = None
        self._device = ""
        self._over = threading.Event()
        self._lock = threading.Lock()

    def start(self, finished: Callable[[Opening], None] = lambda opening: None) -> None:
        """Begin; again is harmless. `finished` is called on the thread, after success or failure."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._open, args=(finished,), name="bamquery-open", daemon=True
                )
                self._thread.start()

    @property
    def is_ready(self) -> bool:
        """Whether `connection` does not wait."""
        return self._over.is_set() and self._failure is None

    @property
    def failure(self) -> BamQueryError | None:
        """What went wrong, if it is over and something did."""
        return self._failure

    @property
    def device(self) -> str:
        """Where queries run, as the banner says it; empty until that is known."""
        return self._device

    @property
    def is_new_database(self) -> bool:
        """Whether the database was made when it was opened; False as long as that is not known."""
        return self._connection is not None and self._connection.created

    def connection(self) -> Connection:
        """The connection, waited for.

        Raises:
            BamQueryError: the database cannot be opened, or the engine cannot be imported.
        """
        self.start()
        while not self._over.wait(_PATIENCE):
            pass
        if self._failure is not None:
            raise self._failure
        assert self._connection is not None
        return self._connection

    def close(self) -> None:
        """Let go of the database; again is harmless."""
        if self._thread is not None:
            self._thread.join(_LONGEST)
        if self._connection is not None:
            self._connection.close()

    def refresh_device(self) -> None:
        """Look anew at where queries run, after a setting was changed."""
        if self._connection is not None:
            self._device = _device_line(self._connection)

    def _open(self, finished: Callable[[Opening], None]) -> None:
        try:
            import pyarrow as pa  # noqa: PLC0415 (what all of this is for: it takes longer than a prompt may)

            # Its own handler now and then loses a Ctrl-C while it reads a CSV file; Python's does not.
            pa.enable_signal_handlers(False)
            from bamquery.connection.connection import open_connection  # noqa: PLC0415 (as above)

            self._connection = open_connection(self.database, None, self._settings)
            self._device = _device_line(self._connection)
            # Imported by the first statement otherwise, which somebody waits for.
        except BamQueryError as error:
            self._failure = error
        except Exception as error:  # of an import, too
            self._failure = BamQueryError(f"the engine does not start: {type(error).__name__}: {error}")
            self._failure.__cause__ = error
        finally:
            self._over.set()
        finished(self)


def _device_line(connection: Connection) -> str:
    from bamquery.engine.device_factory import open_device  # noqa: PLC0415 (it imports pyarrow)

    settings = connection.settings
    device, _ = open_device(settings.device, settings.gpu_memory_limit)
    threads = settings.effective_threads
    on_threads = f", {threads} thread{'s' * (threads != 1)}" if device.capabilities.on_host else ""
    return device.name + on_threads
