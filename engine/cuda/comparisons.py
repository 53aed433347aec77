"""Comparisons: NaN equals NaN and is greater than every number, -0.0 equals 0.0, false is less than true."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator

from bamquery.engine.cuda.kernels import Implementation, Kernels, Operand, argument_rows
from bamquery.engine.cuda.keys.late_keys import LateKeys
from bamquery.engine.cuda.transfer.upload import upload
from bamquery.plan.expressions import Members

Test: TypeAlias = Callable[[Kernels, Operand, Operand], plc.Column]

_FEW = 2
"""Literals up to which IN compares one by one rather than searches."""


def _may_be_nan(operand: Operand) -> bool:
    """Whether comparisons must look: floats that are not known to be numbers."""
    if not pa.types.is_floating(operand.kind):
        return False
    return not operand.is_constant or operand.literal != operand.literal


def _is_nan(kernels: Kernels, operand: Operand, rows: int) -> plc.Column:
    return kernels.is_nan(kernels.column(operand.datum, rows))


def _compare(kernels: Kernels, operator: BinaryOperator, a: Operand, b: Operand) -> plc.Column:
    return kernels.test(operator, kernels.side(a.datum), kernels.side(b.datum))


def equal(kernels: Kernels, a: Operand, b: Operand) -> plc.Column:
    """A = b; null where either is null."""
    plain = _compare(kernels, BinaryOperator.EQUAL, a, b)
    if not (_may_be_nan(a) and _may_be_nan(b)):
        return plain
    rows = argument_rows((a, b))
    neither = kernels.logical_and(_is_nan(kernels, a, rows), _is_nan(kernels, b, rows))
    return kernels.test(BinaryOperator.LOGICAL_OR, plain, neither)


def less(kernels: Kernels, a: Operand, b: Operand) -> plc.Column:
    """A < b; null where either is null."""
    if not _may_be_nan(b):
        return _compare(kernels, BinaryOperator.LESS, a, b)  # a NaN on the left is less than nothing
    # Not (a >= b) is a < b, or either is NaN; a NaN on the left is less than nothing.
    below = kernels.invert(_compare(kernels, BinaryOperator.GREATER_EQUAL, a, b))
    if not _may_be_nan(a):
        return below
    number = kernels.invert(_is_nan(kernels, a, argument_rows((a, b))))
    return kernels.test(BinaryOperator.LOGICAL_AND, below, number)


def less_equal(kernels: Kernels, a: Operand, b: Operand) -> plc.Column:
    """A <= b; null where either is null."""
    if not (_may_be_nan(a) or _may_be_nan(b)):
        return _compare(kernels, BinaryOperator.LESS_EQUAL, a, b)
    return kernels.invert(less(kernels, b, a))


def not_equal(kernels: Kernels, a: Operand, b: Operand) -> plc.Column:
    """A <> b; null where either is null."""
    return kernels.invert(equal(kernels, a, b))


def is_not_distinct_from(kernels: Kernels, a: Operand, b: Operand) -> plc.Column:
    """A = b, where two nulls are equal; never null."""
    rows = argument_rows((a, b))
    known = kernels.fill_null(equal(kernels, a, b))
    nulls = [kernels.is_null(kernels.column(operand.datum, rows)) for operand in (a, b)]
    return kernels.logical_or(known, kernels.logical_and(*nulls))


def is_distinct_from(kernels: Kernels, a: Operand, b: Operand) -> plc.Column:
    """A <> b, where two nulls are equal; never null."""
    return kernels.invert(is_not_distinct_from(kernels, a, b))


def is_in(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    """Whether the value equals a candidate; null where it is null, or equals none and one is null."""
    rows = argument_rows(arguments)
    value = Operand(arguments[0].kind, kernels.column(arguments[0].datum, rows))
    candidates = arguments[1:]
    known = [c for c in candidates if c.is_constant and c.literal is not None]
    tests = [equal(kernels, value, c) for c in candidates if not c.is_constant]
    if len(known) > _FEW:
        constants: Any = pa.array([candidate.datum for candidate in known], value.kind)
        tests.append(_is_in_table(kernels, value, constants))
    else:
        tests += [equal(kernels, value, candidate) for candidate in known]
    if any(c.is_constant and c.literal is None for c in candidates):
        tests.append(kernels.nulls(rows, pa.bool_()))
    return reduce(kernels.logical_or, tests)


def _is_in_table(kernels: Kernels, value: Operand, constants: Any) -> plc.Column:
    """By a hash table, in which NaN equals NaN and the zeros each other."""
    assert isinstance(value.datum, plc.Column)
    is_late = isinstance(constants, LateKeys)
    haystack = constants.column if is_late else upload(kernels.session, constants)
    found = plc.search.contains(haystack, value.datum, stream=kernels.stream, mr=kernels.memory)
    kernels.session.synchronize()  # the constants' copy is done
    if not value.datum.null_count():
        return found
    return kernels.where(kernels.is_valid(value.datum), kernels.fill_null(found), kernels.null(pa.bool_()))


def is_member(kernels: Kernels, value: Operand, members: Members, rows: int) -> plc.Column:
    """Whether the value is one of many; null where it is null."""
    column = Operand(value.kind, kernels.column(value.datum, rows))
    return _is_in_table(kernels, column, members.values)


def _binary(test: Test) -> Implementation:
    return lambda kernels, arguments, kind: test(kernels, arguments[0], arguments[1])


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "equal": _binary(equal),
        "not_equal": _binary(not_equal),
        "less": _binary(less),
        "less_equal": _binary(less_equal),
        "greater": _binary(lambda kernels, a, b: less(kernels, b, a)),
        "greater_equal": _binary(lambda kernels, a, b: less_equal(kernels, b, a)),
        "is_distinct_from": _binary(is_distinct_from),
        "is_not_distinct_from": _binary(is_not_distinct_from),
        "in": is_in,
    }
)
