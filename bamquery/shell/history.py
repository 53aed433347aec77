"""What was typed before: one file per user, which shells that run at the same time append to.

prompt_toolkit's FileHistory makes files that everybody may read, and writes an entry in pieces.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.history import History

_MOST_BYTES: Final = 8 << 20
"""A file that has become longer keeps its newest entries."""
_KEPT: Final = 10_000
"""Entries that are kept then, and most that are looked at."""
_LONGEST: Final = 1 << 20
"""Characters of an entry that is not kept: a paste of data."""


def history_path(environment: Mapping[str, str] = os.environ) -> Path:
    """`$XDG_STATE_HOME/bamquery/history`, `~/.local/state` where that is not set."""
    state = environment.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else Path("~/.local/state").expanduser()
    return folder / "bamquery" / "history"


class ShellHistory(History):
    """Entries of a file, one a line as JSON, so that those of several lines stay whole.

    Attributes:
        private: what is typed from now on is remembered by this shell only.
    """

    def __init__(self, path: Path, complain: Callable[[str], None], *, private: bool = False) -> None:
        """`complain` hears once of a file that cannot be read or written; the shell goes on without."""
        super().__init__()
        self._path = path
        self._complain = complain
        self._broken = False
        self.private = private

    def prepare(self) -> None:
        """Complain now, rather than in the middle of a prompt, of a file that cannot be used."""
        if self.private:
            return
        try:
            with self._exclusive_access():
                self._path.touch(mode=0o600)
            with self._path.open("rb"):
                pass
        except OSError as error:
            self._give_up(error)

    def load_history_strings(self) -> Iterable[str]:
        """See prompt_toolkit: the newest first."""
        if self.private:
            return []
        try:
            return list(reversed(self._read_lines()))
        except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
            self._give_up(error)
            return []

    def store_string(self, string: str) -> None:
        """See prompt_toolkit."""
        if self.private or self._broken or len(string) > _LONGEST:
            return
        try:
            with self._exclusive_access():
                file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    os.fchmod(file, 0o600)
                    os.write(file, _line(string))
                finally:
                    os.close(file)
        except OSError as error:
            self._give_up(error)

    def clear(self) -> None:
        """Forget everything, here and in the file.

        Raises:
            OSError: the file cannot be removed.
        """
        self._loaded_strings = []
        with suppress(FileNotFoundError):
            self._path.unlink()

    def shorten(self) -> None:
        """Leave the newest entries of a file that has become long."""
        with suppress(OSError):
            if self.private or self._path.stat().st_size <= _MOST_BYTES:
                return
            with self._exclusive_access():
                entries = self._read_lines()
                shorter = self._path.with_name("history.new")
                file = os.open(shorter, os.O_WRONLY | os.O_TRUNC | os.O_CREAT | os.O_CLOEXEC, 0o600)
                with os.fdopen(file, "wb") as out:
                    out.writelines(_line(entry) for entry in entries[-_KEPT:])
                shorter.replace(self._path)

    def _read_lines(self) -> list[str]:
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(size - _MOST_BYTES, 0))
                lines = file.read().splitlines()
        except FileNotFoundError:
            return []
        entries = []
        for line in lines[-_KEPT:]:
            # A line that another program wrote, or half of one, is no reason to have no history.
            with suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, str):
                    entries.append(entry)
        return entries

    @contextmanager
    def _exclusive_access(self) -> Iterator[None]:
        """Alone with the file; made with its folder where there is none."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._path.with_name("history.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Held for one write by whoever has it: no deadline is needed.
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _give_up(self, error: Exception) -> None:
        if not self._broken:
            self._broken = True
            reason = getattr(error, "strerror", None) or error
            self._complain(f"history is not kept: {self._path}: {reason}")


def _line(entry: str) -> bytes:
    return json.dumps(entry, ensure_ascii=True).encode() + b"\n"
