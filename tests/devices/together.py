"""Cases side by side over one frame: a device that compiles what it computes does so once for many."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bamquery.engine.device import Device
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Expression, referenced_columns
from bamquery.plan.nodes import Field
from bamquery.plan.rewriting import renumber
from tests.devices.cases import FAILING, Case, check, expected_values
from tests.values import plain, same

_CASES = 16
_COLUMNS = 48
_SLICED = 3
"""Rows that are cut off, so that a column that does not begin at its buffers' beginning is met too."""


@dataclass(frozen=True)
class _Known:
    """A case, the rows on which the CPU computes it, and the errors of the others."""

    case: Case
    fine: pa.RecordBatch
    values: list[Any]
    failing: list[tuple[pa.RecordBatch, str]]


def check_together(device: Device[Any], operators: Device[Any], cases: Iterable[Case]) -> list[str]:
    """What differs from the CPU: values row by row, and the words of errors; one line a case at least.

    `operators`: the same device without programs, which has to give the same.
    """
    found: list[str] = []
    for known in _groups(cases, found, device):
        for one in (device, operators):
            _tell(found, known, _differences(one, known))
        for place, each in enumerate(known):
            _tell(found, [each], _unlike_errors(device, known, place))
    return found


def forget_failures() -> None:
    """Programs that have failed are tried again: their texts, and so their kernels, are the same."""
    module = sys.modules.get("bamquery.engine.cuda.pipeline.compiled_expressions")
    if module is not None:
        module._compile.cache_clear()


def _tell(found: list[str], known: Sequence[_Known], differences: Iterator[str]) -> None:
    try:
        found.extend(differences)
    except Exception as error:  # libcudf's own too, whichever it raises
        names = ", ".join(one.case.name for one in known)
        found.append(f"{names}: {type(error).__name__}: {str(error)[:300]}")


def _groups(cases: Iterable[Case], found: list[str], device: Device[Any]) -> Iterator[list[_Known]]:
    """Those that have a row which can be computed; the others are checked by themselves."""
    group: list[_Known] = []
    for case in cases:
        known = _known(case)
        if not known.fine.num_rows:
            _tell(found, [known], _alone(device, case))
            continue
        columns = sum(one.fine.num_columns for one in group)
        if len(group) == _CASES or columns + known.fine.num_columns > _COLUMNS:
            yield group
            group = []
        group.append(known)
    if group:
        yield group


def _alone(device: Device[Any], case: Case) -> Iterator[str]:
    check(device, case)
    yield from ()


def _known(case: Case) -> _Known:
    names = [f"c{number}" for number in range(len(case.columns))]
    batch = pa.RecordBatch.from_arrays(list(case.columns), names)
    answers = expected_values(case.expression, batch)
    errors = [(row, str(one)) for row, one in enumerate(answers) if isinstance(one, ExecutionError)]
    fine = batch.filter(pa.array([not isinstance(one, ExecutionError) for one in answers], pa.bool_()))
    values = [one for one in answers if not isinstance(one, ExecutionError)]
    failing = [(batch.slice(row, 1), said) for row, said in errors[:FAILING]]
    return _Known(case, fine, values, failing)


def _side_by_side(
    known: Sequence[_Known], failing: tuple[int, pa.RecordBatch] | None = None
) -> tuple[pa.RecordBatch, list[Expression], list[Field]]:
    """Rows of all cases over and over, as many as the longest has; behind them one that fails for a case."""
    rows = max(one.fine.num_rows for one in known)
    columns: list[pa.Array] = []
    expressions, fields = [], []
    for place, one in enumerate(known):
        places = {index: len(columns) + index for index in referenced_columns(one.case.expression)}
        expressions.append(renumber(one.case.expression, places))
        fields.append(Field(f"x{place}", one.case.expression.type))
        extra = rows + (failing is not None and failing[0] != place)
        taken = one.fine.take(pa.array([row % one.fine.num_rows for row in range(extra)], pa.int64()))
        if failing is not None and failing[0] == place:
            columns += [
                pa.concat_arrays([column, last])
                for column, last in zip(taken.columns, failing[1].columns, strict=True)
            ]
        else:
            columns += taken.columns
    names = [f"c{number}" for number in range(len(columns))]
    return pa.RecordBatch.from_arrays(columns, names), expressions, fields


def _differences(device: Device[Any], known: Sequence[_Known]) -> Iterator[str]:
    batch, expressions, fields = _side_by_side(known)
    for start in (0, min(_SLICED, batch.num_rows - 1)):
        frame = device.evaluate(expressions, device.from_arrow(batch.slice(start)))
        answer = device.to_arrow(frame, fields)
        for one, column in zip(known, answer.columns, strict=True):
            yield from _unlike(one, column, start)


def _unlike(known: _Known, column: pa.Array, start: int) -> Iterator[str]:
    """The first row that differs, if one does."""
    case = known.case
    if column.type != case.expression.type:
        yield f"{case.name}: {column.type}, not {case.expression.type}"
        return
    # A day has a 24:00:00 in SQL, of which Arrow knows nothing.
    column.validate(full=not pa.types.is_time64(column.type))
    count = known.fine.num_rows
    for row, mine in enumerate(plain(column), start):
        wanted = known.values[row % count]
        if not same(mine, wanted, case.tolerance):
            values = [plain(given)[0] for given in known.fine.slice(row % count, 1).columns]
            yield f"{case.name} of {values}: {mine!r}, not {wanted!r}"
            return


def _unlike_errors(device: Device[Any], known: Sequence[_Known], place: int) -> Iterator[str]:
    """A program sees each row that fails, whatever else it computes; the operators have the words."""
    case = known[place].case
    for row, wanted in known[place].failing:
        batch, expressions, _ = _side_by_side(known, (place, row))
        forget_failures()
        try:
            device.evaluate(expressions, device.from_arrow(batch))
        except ExecutionError as error:
            if str(error) != wanted:
                yield f"{case.name}: {error}, not {wanted}"
        else:
            yield f"{case.name}: no error, but {wanted}"
