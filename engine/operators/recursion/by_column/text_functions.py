"""Functions of texts over all rows of a step: an operation at a time, over lists of Python's texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import (
    TEXT,
    Column,
    ColumnFunction,
    Columns,
    Valid,
    both,
    spread,
    with_bounds,
)
from bamquery.engine.operators.recursion.by_row.strings import substring
from bamquery.engine.operators.recursion.by_row.values import MOST_CHARACTERS, WHOLE, LeftToDeviceError
from bamquery.plan.expressions import Call, Cast, Expression, Literal

TextList: TypeAlias = Callable[[Columns], tuple[list[str], Valid]]
"""The texts of all rows, and which are not null; at nulls empty ones, or what becomes of such."""
FunctionOf: TypeAlias = Callable[[Expression], ColumnFunction | None]

_MOST_ROWS: Final = 1024
"""For more, operators are faster."""


def text_function(expression: Expression, texts: TextCodes, function_of: FunctionOf) -> ColumnFunction | None:
    """The function of an operation with texts; None: it is none of these few.

    `function_of`: of what the operation is with.
    """
    if isinstance(expression, Call) and expression.function == "length":
        return _length(expression.arguments, texts, function_of)
    operation = _operation(expression, texts, function_of)
    if operation is None:
        return None

    def compute(columns: Columns) -> Column:
        values, valid = operation(columns)
        some: Sequence[str | None] = values
        if valid is not None:
            some = [value if known else None for value, known in zip(values, valid.tolist(), strict=True)]
        codes = texts.codes_of_computed(some)
        return Column(codes, valid, 0, max(len(texts) - 1, 0))

    return compute


def _operation(expression: Expression, texts: TextCodes, function_of: FunctionOf) -> TextList | None:
    match expression:
        case Cast(argument=argument, type=kind, try_=False) if kind == TEXT and argument.type in WHOLE:
            return _numbers(function_of(argument))
        case Call(function="substring", arguments=(value, *places), type=kind) if kind == TEXT:
            if substring(lambda row: row, places) is None:  # as few as rows have
                return None
            start, *length = (each.value.as_py() for each in places if isinstance(each, Literal))
            stop = start - 1 + length[0] if length and length[0] is not None else None
            return _each(
                lambda values: [text[start - 1 : stop] for text in values], _list(value, texts, function_of)
            )
        case Call(function=name, arguments=(value,), type=kind) if name in _CASES and kind == TEXT:
            change = _CASES[name]
            return _each(change, _list(value, texts, function_of), is_plain=True)
        case Call(function="concat", arguments=(_, _), type=kind) if kind == TEXT:
            return _concatenation(list(_concatenated(expression)), texts, function_of)
        case _:
            return None


def _list(expression: Expression, texts: TextCodes, function_of: FunctionOf) -> TextList | None:
    """Texts of any kind: what is computed is not numbered on the way."""
    if expression.type != TEXT:
        return None
    operation = _operation(expression, texts, function_of)
    function = function_of(expression) if operation is None else None
    if function is None:
        return operation

    def texts_of(columns: Columns) -> tuple[list[str], Valid]:
        column = spread(function(columns), _rows(columns))
        values = texts.to_list(column.values)
        if column.valid is not None:
            values = [
                text if known else "" for text, known in zip(values, column.valid.tolist(), strict=True)
            ]
        return values, column.valid

    return texts_of


def _rows(columns: Columns) -> int:
    rows = len(columns[0].values)
    if rows > _MOST_ROWS:
        raise LeftToDeviceError
    return rows


def _numbers(function: ColumnFunction | None) -> TextList | None:
    if function is None:
        return None

    def texts_of(columns: Columns) -> tuple[list[str], Valid]:
        column = spread(function(columns), _rows(columns))
        return list(map(str, column.values.tolist())), column.valid

    return texts_of


def _each(
    change: Callable[[list[str]], list[str]], argument: TextList | None, *, is_plain: bool = False
) -> TextList | None:
    """`is_plain`: of ASCII only; of others Python may know another case than a device."""
    if argument is None:
        return None

    def texts_of(columns: Columns) -> tuple[list[str], Valid]:
        values, valid = argument(columns)
        if is_plain:
            _require_ascii(values)
        return change(values), valid

    return texts_of


def _concatenated(expression: Expression) -> Iterator[Expression]:
    """What is put together, by however many operators."""
    if isinstance(expression, Call) and expression.function == "concat" and len(expression.arguments) == 2:
        for argument in expression.arguments:
            yield from _concatenated(argument)
    else:
        yield expression


def _concatenation(parts: Sequence[Expression], texts: TextCodes, function_of: FunctionOf) -> TextList | None:
    """All parts at once, by a pattern that has the constants among them in their places."""
    pattern, lists = "", []
    for part in parts:
        if isinstance(part, Literal) and part.type == TEXT and part.value.is_valid:
            pattern += part.value.as_py().replace("%", "%%")
            continue
        found = _list(part, texts, function_of)
        if found is None:
            return None
        pattern += "%s"
        lists.append(found)

    def texts_of(columns: Columns) -> tuple[list[str], Valid]:
        values, valids = zip(*[each(columns) for each in lists], strict=True)
        made = list(map(pattern.__mod__, zip(*values, strict=True)))
        if max(map(len, made)) > MOST_CHARACTERS:
            raise LeftToDeviceError
        return made, reduce(both, valids)

    return texts_of if lists else None


def _length(
    arguments: Sequence[Expression], texts: TextCodes, function_of: FunctionOf
) -> ColumnFunction | None:
    argument = _list(arguments[0], texts, function_of) if len(arguments) == 1 else None
    if argument is None:
        return None

    def compute(columns: Columns) -> Column:
        values, valid = argument(columns)
        _require_ascii(values)
        return with_bounds(np.array(list(map(len, values)), np.int64), valid, pa.int64())

    return compute


def _require_ascii(values: Sequence[str]) -> None:
    if not "".join(values).isascii():
        raise LeftToDeviceError


_CASES: Final[Mapping[str, Callable[[list[str]], list[str]]]] = MappingProxyType(
    {
        "lower": lambda values: list(map(str.lower, values)),
        "upper": lambda values: list(map(str.upper, values)),
    }
)
