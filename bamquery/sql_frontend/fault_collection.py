"""Many reasons, one error: binding goes on after a fault, so that a statement's faults are told together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sqlglot import exp

from bamquery.errors import Reason, SqlError, UnsupportedError
from bamquery.sql_frontend.syntax.positions import reason
from bamquery.statement_context.cancellation import check_cancelled

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def errors_at(sql: str, node: exp.Expr | None) -> Iterator[None]:
    """Turn a `ValueError` raised inside into a `SqlError` that points at the node."""
    try:
        yield
    except ValueError as error:
        raise SqlError(reason(str(error), sql, node), sql) from error


class FaultCollector:
    """Collects the reasons of several steps and raises them as one error."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._errors: list[SqlError] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep a `SqlError` raised inside for later."""
        try:
            yield
        except SqlError as error:
            self._errors.append(error)

    @property
    def count(self) -> int:
        """How many errors were collected."""
        return len(self._errors)

    def check(self) -> None:
        """Raise what was collected, if anything was, in the order of the text."""
        if not self._errors:
            return
        errors, self._errors = self._errors, []
        try:
            if len(errors) == 1 == len(errors[0].reasons):
                raise errors[0]  # as it is: of many levels each would write it anew
            found = dict.fromkeys(r for error in errors for r in error.reasons)
            reasons: list[Reason] = sorted(found, key=lambda r: (r.line, r.column))
            unsupported = all(isinstance(error, UnsupportedError) for error in errors)
            raise (UnsupportedError if unsupported else SqlError)(reasons, self._sql)
        finally:
            del errors  # an error that this call knows would know itself, and keep all that was bound


def apply_to_each(step: Callable[[Item], Result], items: Iterable[Item], sql: str) -> Sequence[Result]:
    """The step's result for each item; the reasons of all that fail, in one error."""
    faults = FaultCollector(sql)
    results: list[Result] = []
    for item in items:
        check_cancelled()
        with faults.collect():
            results.append(step(item))
    faults.check()
    return results
