"""Every error BamQuery raises on purpose: one root, few branches.

A message names the thing that is wrong and the way out. What is a bug in BamQuery, or in a library that it
calls, is an :class:`InternalError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bamquery.text.statement_text import DEFAULT_WIDTH, Place
from bamquery.text.terminal import escape_lines

_MOST_REASONS: Final = 10
"""Reasons that an error's text has; its attribute has all."""

_MOST_REPORTED: Final = 2000
"""Characters of a statement that an internal error's text has."""


class BamQueryError(Exception):
    """Root of all errors that users can meet."""

    def render(self, width: int = DEFAULT_WIDTH, *, colour: bool = False) -> str:
        """As a terminal of a width may have it: nothing steers it but, if `colour`, marks at the word."""
        del width, colour
        return escape_lines(str(self))


@dataclass(frozen=True)
class Reason:
    """One thing wrong with a statement, with its place in the text (1-based; 0 where unknown).

    Attributes:
        message: what is wrong.
        line: as `str.splitlines` counts.
        column: in characters.
        sql: the text that the place is in, where it is not the statement's own, but a view's.
    """

    message: str
    line: int = 0
    column: int = 0
    sql: str = ""

    def render(self, sql: str, width: int = DEFAULT_WIDTH, *, colour: bool = False) -> str:
        """The message, then the line of the statement and a caret below its column."""
        return _with_place(self.message, Place(self.sql or sql, self.line, self.column), width, colour)


def _with_place(message: str, place: Place | None, width: int, colour: bool) -> str:
    shown = "" if place is None else place.render(width, colour=colour)
    message = escape_lines(message)
    return f"{message}\n{shown}" if shown else message


def _show_reasons(reasons: Sequence[Reason], sql: str, width: int, colour: bool) -> str:
    shown = [reason.render(sql, width, colour=colour) for reason in reasons[:_MOST_REASONS]]
    more = len(reasons) - len(shown)
    return "\n".join([*shown, *([f"and {more:,} more like these"] if more else [])])


class SqlError(BamQueryError):
    """A statement that cannot be run: syntax, unknown names, types that do not fit.

    Attributes:
        reasons: everything found wrong, in the order of the text.
        sql: the statement as given.
    """

    def __init__(self, reasons: str | Reason | Sequence[Reason], sql: str = "") -> None:
        """Take one message, one reason or several; the text is rendered with line and caret."""
        if isinstance(reasons, str):
            reasons = [Reason(reasons)]
        elif isinstance(reasons, Reason):
            reasons = [reasons]
        self.reasons = tuple(reasons)
        self.sql = sql
        super().__init__(_show_reasons(self.reasons, sql, DEFAULT_WIDTH, False))

    def render(self, width: int = DEFAULT_WIDTH, *, colour: bool = False) -> str:
        """See `BamQueryError`."""
        return _show_reasons(self.reasons, self.sql, width, colour)


class UnsupportedError(SqlError):
    """A statement that is right but that BamQuery cannot run (yet, or on this device)."""


class CatalogError(BamQueryError):
    """A table or column that does not exist, exists already, or has an impossible name."""


class ConstraintError(BamQueryError):
    """A row that its table does not take: a null where the column is NOT NULL."""


class ExecutionError(BamQueryError):
    """A value that an expression cannot compute with: overflow, a failed cast.

    Attributes:
        place: of the expression in its statement, or None where it is not known.
    """

    def __init__(self, message: str, place: Place | None = None) -> None:
        """Show the place below the message."""
        self.place = place
        self._message = message
        super().__init__(_with_place(message, place, DEFAULT_WIDTH, False))

    def render(self, width: int = DEFAULT_WIDTH, *, colour: bool = False) -> str:
        """See `BamQueryError`."""
        return _with_place(self._message, self.place, width, colour)


@contextmanager
def attach_place(place: Place | None) -> Iterator[None]:
    """Let an `ExecutionError` raised inside show a place in the statement, unless it has one."""
    try:
        yield
    except ExecutionError as error:
        if place is None or error.place is not None or isinstance(error, MemoryLimitError):
            raise
        raise ExecutionError(str(error), place) from None


@contextmanager
def within_depth(sql: str = "") -> Iterator[None]:
    """Let trees and plans that are too deep to be walked by recursion be an `SqlError` of the statement."""
    try:
        yield
    except RecursionError:
        raise too_deep(sql) from None


def too_deep(sql: str = "") -> SqlError:
    """A statement, or a plan, of more levels than any stack has room for."""
    return SqlError(
        "the statement is nested too deeply, or joins too much (some thousands of levels work): put a part "
        "of it into a table by CREATE TABLE ... AS",
        sql,
    )


class InternalError(BamQueryError):
    """A fault of BamQuery's own, or of a library below it, which is worth a report; `__cause__` has it.

    Attributes:
        sql: the statement that met it; empty where it is not known.
    """

    def __init__(self, message: str, sql: str = "") -> None:
        """Ask for a report, with the statement."""
        self.sql = sql
        said = f"internal error: {message}\nThis is a fault of BamQuery's: please report it"
        shown = sql if len(sql) <= _MOST_REPORTED else f"{sql[:_MOST_REPORTED]}…"
        super().__init__(f"{said}, with the statement:\n{shown}" if shown else said)


_MISUSE: Final = (TypeError, ValueError)
"""What a function of the Python API raises itself where its arguments are not what it takes."""


@contextmanager
def foreign_errors(sql: str = "", *, takes_arguments: bool = False) -> Iterator[None]:
    """Let what is no error of ours become one that names the statement and has the other as its cause.

    What the system refuses is a `StorageError`, all else an `InternalError`. MemoryError, RecursionError
    (see `within_depth`), a package that is not there and what is no `Exception` (Ctrl-C) stay what they are;
    and where arguments from Python are taken, so do plain TypeErrors and ValueErrors.

    Args:
        sql: the statement, as far as it is known.
        takes_arguments: whether arguments are looked at inside.
    """
    try:
        yield
    except (BamQueryError, MemoryError, RecursionError, ImportError):
        raise
    except OSError as error:
        raise StorageError(f"the system refused: {error.strerror or error}", error.filename) from error
    except Exception as error:
        if takes_arguments and type(error) in _MISUSE:
            raise
        raise _internal(error, sql) from error


def _internal(error: Exception, sql: str) -> InternalError:
    said = str(error).strip().partition("\n")[0]
    return InternalError(f"{type(error).__name__}: {said}" if said else type(error).__name__, sql)


class MemoryLimitError(BamQueryError):
    """An operator needed more than the setting it names allows."""


class CancelledError(BamQueryError):
    """A query that was stopped from outside before it had its answer."""


class StatementTimeoutError(CancelledError):
    """A statement that ran longer than `statement_timeout`."""


class SettingError(BamQueryError):
    """A setting that does not exist, or a value it cannot take."""


class AccessError(BamQueryError):
    """A file that statements are not to read or write, as the settings have it."""


class StorageError(BamQueryError):
    """The file system or a file of the database failed us.

    Attributes:
        reason: the message without the path.
        path: the file or folder concerned, or None.
    """

    def __init__(self, message: str, path: str | Path | None = None) -> None:
        """Name the path in the message where there is one."""
        self.reason = message
        self.path = None if path is None else Path(path)
        super().__init__(message if path is None else f"{path}: {message}")


class NvmeError(StorageError):
    """A controller answered a command with an error, or not in time.

    Attributes:
        nsid: the namespace.
        lba: its block at which the command began.
        sct: the status code type.
        sc: the status code.
        drive: which of several it was, from 0 on; -1 where there is one.
    """

    def __init__(  # noqa: PLR0917 (see drive)
        self,
        message: str,
        nsid: int,
        lba: int,
        sct: int,
        sc: int,
        drive: int = -1,  # positional, since compiled code raises with such arguments only
        *,
        path: str | Path | None = None,
    ) -> None:
        """Name in the message what the command was for; where it was and how it ended follow."""
        self.nsid, self.lba, self.sct, self.sc, self.drive = nsid, lba, sct, sc, drive
        which = f"drive {drive}, " if drive >= 0 else ""
        super().__init__(f"{message} ({which}namespace {nsid}, LBA {lba}, status {sct:x}h/{sc:02x}h)", path)


class CorruptionError(StorageError):
    """Bytes on disk are not the bytes that were written: a checksum, size or format does not match."""


class ConflictError(StorageError):
    """Another writer committed first; nothing that was committed is lost, this change was not made."""


class IngestError(StorageError):
    """A source that cannot be loaded: names the file and, where known, the row group and column."""


class GpuError(BamQueryError):
    """A GPU, its driver, or what Python needs to reach them is missing, or it failed."""


class KernelError(GpuError):
    """A kernel that does not compile, or that is launched with arguments it does not take.

    Attributes:
        file: the source that the compiler complains of first, or None.
        line: the line there, from 1; 0 where unknown.
        log: all that the compiler said.
    """

    def __init__(self, message: str, file: str | Path | None = None, line: int = 0, log: str = "") -> None:
        """Put the place before the message, and the log, where there is one, under it."""
        self.file = None if file is None else Path(file)
        self.line = line
        self.log = log
        place = "" if file is None else f"{file}:{line}: "
        super().__init__(f"{place}{message}" + (f"\n{log.rstrip()}" if log else ""))
