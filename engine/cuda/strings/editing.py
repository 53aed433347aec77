"""Functions that cut and search strings, where all arguments but the first are constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.strings.side_type import SideType

from bamquery.engine.cuda.kernels import INT64, Constant, Implementation, Kernels, Operand, argument_rows
from bamquery.engine.cuda.strings.basic import FAR, slice_places
from bamquery.engine.formulas.spaces import SPACES

_TEXT: Any = pa.large_string()


def _column(kernels: Kernels, arguments: Sequence[Operand]) -> plc.Column:
    return kernels.column(arguments[0].datum, argument_rows(arguments))


def _text(kernels: Kernels, value: str) -> plc.Scalar:
    constant: Constant = pa.scalar(value, _TEXT)
    return kernels.scalar(constant)


def _constants(implementation: Implementation) -> Implementation:
    """Null where a constant is."""

    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        if any(argument.literal is None for argument in arguments[1:]):
            return kernels.nulls(argument_rows(arguments), kind)
        return implementation(kernels, arguments, kind)

    return apply


def _ends_with(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    target = _text(kernels, arguments[1].literal)
    column = _column(kernels, arguments)
    return plc.strings.find.ends_with(column, target, stream=kernels.stream, mr=kernels.memory)


def _strip(side: SideType, *, spaces: bool) -> Implementation:
    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        characters = SPACES if spaces else arguments[1].literal
        column = _column(kernels, arguments)
        if not characters:  # libcudf would take spaces off
            return column
        return plc.strings.strip.strip(
            column, side, _text(kernels, characters), stream=kernels.stream, mr=kernels.memory
        )

    return apply if spaces else _constants(apply)


def _left(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    return slice_places(kernels, _column(kernels, arguments), 0, arguments[1].literal)


def _right(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    count = arguments[1].literal
    start, stop = (-count, FAR) if count else (0, 0)
    return slice_places(kernels, _column(kernels, arguments), start, stop)


def _replace(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    what, by = (argument.literal for argument in arguments[1:])
    column = _column(kernels, arguments)
    if not what:
        return column
    return plc.strings.replace.replace(
        column, _text(kernels, what), _text(kernels, by), stream=kernels.stream, mr=kernels.memory
    )


def _position(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    column, part = _column(kernels, arguments), arguments[1].literal
    if not part:
        found = kernels.repeat_scalar(kernels.number(1), column.size())
        return kernels.where(kernels.is_valid(column), found, kernels.null(kind))
    places = plc.strings.find.find(column, _text(kernels, part), stream=kernels.stream, mr=kernels.memory)
    place = kernels.convert(places, INT64)
    return kernels.binary(plc.binaryop.BinaryOperator.ADD, place, kernels.number(1), INT64)


def _byte_count(factor: int) -> Implementation:
    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        column = _column(kernels, arguments)
        counted = plc.strings.attributes.count_bytes(column, stream=kernels.stream, mr=kernels.memory)
        counts = kernels.convert(counted, INT64)
        return kernels.binary(plc.binaryop.BinaryOperator.MUL, counts, kernels.number(factor), INT64)

    return apply


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "ends_with": _constants(_ends_with),
        "ltrim": _strip(SideType.LEFT, spaces=True),
        "rtrim": _strip(SideType.RIGHT, spaces=True),
        "trim_of": _strip(SideType.BOTH, spaces=False),
        "ltrim_of": _strip(SideType.LEFT, spaces=False),
        "rtrim_of": _strip(SideType.RIGHT, spaces=False),
        "left": _constants(_left),
        "right": _constants(_right),
        "replace": _constants(_replace),
        "position": _constants(_position),
        "strlen": _byte_count(1),
        "bit_length": _byte_count(8),
    }
)
