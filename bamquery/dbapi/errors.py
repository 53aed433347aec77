"""PEP 249's exceptions, and which of them an error of BamQuery becomes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bamquery import errors
from bamquery.errors import BamQueryError


class Warning(Exception):  # noqa: A001, N818 (PEP 249's name)
    """PEP 249 wants it; nothing raises it."""


class Error(BamQueryError):
    """Root of the errors that this module raises; `__cause__` is BamQuery's own, where there is one."""


class InterfaceError(Error):
    """A connection or cursor that is closed, or used in another way than it can be."""


class DatabaseError(Error):
    """Whatever the database says; mostly one of the classes below."""


class DataError(DatabaseError):
    """A value that an expression cannot compute with: overflow, a failed cast."""


class OperationalError(DatabaseError):
    """Storage, memory, a GPU, a conflict with another writer, a query that was cancelled."""


class IntegrityError(DatabaseError):
    """A row that its table does not take: a null where the column is NOT NULL."""


class InternalError(DatabaseError):
    """Bytes on disk that are not the bytes that were written; a fault of BamQuery's."""


class ProgrammingError(DatabaseError):
    """A statement that cannot be understood, unknown names, parameters that do not fit."""


class NotSupportedError(DatabaseError):
    """What BamQuery does not have: a construct of SQL, or `rollback()`."""


_CLASSES: Final[tuple[tuple[type[BamQueryError], type[Error]], ...]] = (
    (errors.UnsupportedError, NotSupportedError),
    (errors.SqlError, ProgrammingError),
    (errors.CatalogError, ProgrammingError),
    (errors.SettingError, ProgrammingError),
    (errors.ConstraintError, IntegrityError),
    (errors.ExecutionError, DataError),
    (errors.CorruptionError, InternalError),
    (errors.InternalError, InternalError),
    (errors.StorageError, OperationalError),
    (errors.MemoryLimitError, OperationalError),
    (errors.CancelledError, OperationalError),
    (errors.GpuError, OperationalError),
)
"""A class before those it derives from."""


def error_class(error: BamQueryError) -> type[Error]:
    """The class of PEP 249 for an error of BamQuery."""
    return next((pep for own, pep in _CLASSES if isinstance(error, own)), DatabaseError)


@contextmanager
def pep_errors() -> Iterator[None]:
    """Raise PEP 249's errors for BamQuery's, which become their causes."""
    try:
        yield
    except Error:
        raise
    except BamQueryError as error:
        raise error_class(error)(str(error)) from error
