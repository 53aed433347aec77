"""Expressions computed over one frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import pylibcudf as plc

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.casts.cast import cast
from bamquery.engine.cuda.comparisons import is_member
from bamquery.engine.cuda.expressions.conditions import FORMS
from bamquery.engine.cuda.expressions.dictionary_values import ask_dictionary
from bamquery.engine.cuda.expressions.function_registry import FUNCTIONS
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Datum, Kernels, Operand
from bamquery.errors import attach_place
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal, Members, walk
from bamquery.plan.interning import DIFFERENT_EACH_TIME

_MOST_PARTS: Final = 200
"""Of expressions, to be compared with each other: hashes go as deep as they do, whatever stack there is."""


def evaluate_columns(
    kernels: Kernels, expressions: Sequence[Expression], frame: CudaFrame
) -> list[plc.Column]:
    """One column per expression, of its type. No rows, no errors.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    if not frame.rows:
        return [kernels.nulls(0, value_type(expression.type)) for expression in expressions]
    return [kernels.column(evaluate(kernels, e, frame), frame.rows) for e in expressions]


def evaluate(kernels: Kernels, expression: Expression, frame: CudaFrame) -> Datum:
    """The expression's value for each row, or one for all of at least one row.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    shared = frame.shared
    if not shared or isinstance(expression, (ColumnRef, Literal, Members)) or expression not in shared:
        return _compute(kernels, expression, frame)
    found: Datum | None = shared[expression]
    if found is None:
        found = shared[expression] = _compute(kernels, expression, frame)
    return found


def repeated_parts(expressions: Sequence[Expression]) -> frozenset[Expression]:
    """What is computed more than once for some expressions, the largest such parts and those within them."""
    if sum(1 for expression in expressions for _ in walk(expression)) > _MOST_PARTS:
        return frozenset()
    counts = Counter(
        part for expression in expressions for part in walk(expression) if isinstance(part, (Call, Cast))
    )
    return frozenset(part for part, count in counts.items() if count > 1 and not _draws_at_random(part))


def _draws_at_random(expression: Expression) -> bool:
    return any(isinstance(part, Call) and part.function in DIFFERENT_EACH_TIME for part in walk(expression))


def _compute(kernels: Kernels, expression: Expression, frame: CudaFrame) -> Datum:
    match expression:
        case ColumnRef(index=index):
            return frame.columns[index]
        case Literal(value=value):
            return value
        case _ if (found := _of_dictionary(kernels, expression, frame)) is not None:
            return found
        case Cast(argument=argument, type=kind, try_=try_, place=written):
            column = kernels.column(evaluate(kernels, argument, frame), frame.rows)
            given = Operand(value_type(argument.type), column)
            with attach_place(written):
                return cast(kernels, given, value_type(kind), try_=try_)
        case Call(function=name, arguments=arguments, type=kind) if name in FORMS:
            return FORMS[name](kernels, arguments, value_type(kind), frame, evaluate)
        case Call(function="in", arguments=(argument, Members() as members)):
            given = Operand(value_type(argument.type), evaluate(kernels, argument, frame))
            return is_member(kernels, given, members, frame.rows)
        case Call(function=name, arguments=arguments, type=kind):
            given_all = [Operand(value_type(a.type), evaluate(kernels, a, frame)) for a in arguments]
            if all(argument.is_constant for argument in given_all):
                # The others stay constants, since some functions take literals only.
                place = 1 if name in ("date_part", "date_trunc") else 0
                datum = kernels.column(given_all[place].datum, frame.rows)
                given_all[place] = Operand(given_all[place].kind, datum)
            return FUNCTIONS[name](kernels, given_all, value_type(kind))
        case Members():
            raise AssertionError("members are looked among, not computed")


def _of_dictionary(kernels: Kernels, expression: Expression, frame: CudaFrame) -> plc.Column | None:
    """What is computed of a dictionary's values, looked up for the rows; None where that cannot be."""
    answers = ask_dictionary(kernels, expression, frame)
    return None if answers is None else kernels.gather([answers.column], answers.places)[0]
