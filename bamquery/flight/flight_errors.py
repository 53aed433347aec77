"""BamQuery's errors as those of Flight, which tell clients what kind they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from pyarrow import flight

from bamquery.errors import (
    AccessError,
    BamQueryError,
    CancelledError,
    ConflictError,
    IngestError,
    InternalError,
    StatementTimeoutError,
    StorageError,
    UnsupportedError,
)


class _Untraced(Exception):  # noqa: N818 (a part of the three below)
    """Arrow appends the traceback to what clients get, or only the name where it cannot make one."""

    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("a client gets no traceback")


class InvalidStatement(_Untraced, pa.ArrowInvalid):
    """INVALID_ARGUMENT."""


class NotThere(_Untraced, pa.ArrowKeyError):
    """NOT_FOUND."""


class NotSupported(_Untraced, pa.ArrowNotImplementedError):
    """UNIMPLEMENTED."""


_KINDS: Final = MappingProxyType(
    {
        UnsupportedError: NotSupported,
        AccessError: flight.FlightUnauthorizedError,
        StatementTimeoutError: flight.FlightTimedOutError,
        CancelledError: flight.FlightCancelledError,
        ConflictError: flight.FlightUnavailableError,
        IngestError: InvalidStatement,
        StorageError: flight.FlightServerError,
        BamQueryError: InvalidStatement,
        OverflowError: flight.FlightUnavailableError,
        NotImplementedError: NotSupported,
        KeyError: NotThere,
        ValueError: InvalidStatement,
        TypeError: InvalidStatement,
    }
)
"""The first that an error is an instance of counts."""


@contextmanager
def as_flight_errors(report: Callable[..., Any]) -> Iterator[None]:
    """Let what is raised inside reach the client; `report` hears of it first, and whether it is a bug.

    What is no error of a user says nothing of itself: it is in the log.

    Raises:
        ArrowException: as what was raised inside.
    """
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException as error:
        made = flight_error(error)
        report(error, is_bug=made is None)
        raise made or flight.FlightInternalError("the server failed; its log says how") from None


def flight_error(error: BaseException) -> Exception | None:
    """The error as one of Flight; None of what nobody meant to raise."""
    if isinstance(error, flight.FlightError):
        return error
    if isinstance(error, InternalError):
        return None
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    for kind, flight_kind in _KINDS.items():
        if isinstance(error, kind):
            made: Exception = flight_kind(text)
            return made
    return None
