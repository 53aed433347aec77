"""Functions of floating-point numbers, tests of them, and bits of integers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.types import TypeId
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda import comparisons
from bamquery.engine.cuda.kernels import BOOL, FLOAT64, Implementation, Kernels, Operand, argument_rows
from bamquery.engine.cuda.libcudf_types import device_type

_INT8: Final = plc.DataType(TypeId.INT8)


def _only_argument(kernels: Kernels, arguments: Sequence[Operand]) -> plc.Column:
    return kernels.column(arguments[0].datum, argument_rows(arguments))


def _unary(operator: UnaryOperator) -> Implementation:
    return lambda kernels, arguments, kind: kernels.unary(operator, _only_argument(kernels, arguments))


def _binary(operator: BinaryOperator) -> Implementation:
    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        a, b = (kernels.side(argument.datum) for argument in arguments)
        return kernels.binary(operator, a, b, device_type(kind))

    return apply


def _cot(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    tangent = kernels.unary(UnaryOperator.TAN, _only_argument(kernels, arguments))
    double: Any = pa.float64()
    return kernels.binary(BinaryOperator.DIV, kernels.number(1.0, double), tangent, FLOAT64)


def _sign(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    column = _only_argument(kernels, arguments)
    zero = kernels.number(0, arguments[0].kind)
    above, below = (
        kernels.convert(kernels.test(operator, column, zero), _INT8)
        for operator in (BinaryOperator.GREATER, BinaryOperator.LESS)
    )
    return kernels.binary(BinaryOperator.SUB, above, below, _INT8)


def _isnan(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    column = _only_argument(kernels, arguments)
    return _null_where_unknown(kernels, column, kernels.is_nan(column))


def _null_where_unknown(kernels: Kernels, column: plc.Column, mask: plc.Column) -> plc.Column:
    """The mask, null where the column is."""
    return kernels.where(kernels.is_valid(column), mask, kernels.null(pa.bool_()))


def _is_infinite(kernels: Kernels, arguments: Sequence[Operand]) -> plc.Column:
    column = _only_argument(kernels, arguments)
    limits = [kernels.number(limit, arguments[0].kind) for limit in (math.inf, -math.inf)]
    return kernels.logical_or(
        *(kernels.binary(BinaryOperator.EQUAL, column, limit, BOOL) for limit in limits)
    )


def _isinf(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    return _is_infinite(kernels, arguments)


def _isfinite(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    column = _only_argument(kernels, arguments)
    neither = kernels.logical_or(kernels.is_nan(column), _is_infinite(kernels, arguments))
    return _null_where_unknown(kernels, column, kernels.invert(neither))


def _extreme(better: str) -> Implementation:
    """The best of values that are not null; null where all are."""

    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        rows = argument_rows(arguments)
        best = kernels.column(arguments[0].datum, rows)
        for argument in arguments[1:]:
            other = kernels.column(argument.datum, rows)
            sides = [Operand(kind, other), Operand(kind, best)]
            ahead = kernels.fill_null(comparisons.FUNCTIONS[better](kernels, sides, pa.bool_()))
            choose = kernels.logical_or(ahead, kernels.is_null(best))
            best = kernels.where(choose, other, best)
        return best

    return apply


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "cbrt": _unary(UnaryOperator.CBRT),
        "sin": _unary(UnaryOperator.SIN),
        "cos": _unary(UnaryOperator.COS),
        "tan": _unary(UnaryOperator.TAN),
        "asin": _unary(UnaryOperator.ARCSIN),
        "acos": _unary(UnaryOperator.ARCCOS),
        "atan": _unary(UnaryOperator.ARCTAN),
        "sinh": _unary(UnaryOperator.SINH),
        "cosh": _unary(UnaryOperator.COSH),
        "tanh": _unary(UnaryOperator.TANH),
        "asinh": _unary(UnaryOperator.ARCSINH),
        "acosh": _unary(UnaryOperator.ARCCOSH),
        "atanh": _unary(UnaryOperator.ARCTANH),
        "cot": _cot,
        "atan2": _binary(BinaryOperator.ATAN2),
        "sign": _sign,
        "isnan": _isnan,
        "isinf": _isinf,
        "isfinite": _isfinite,
        "greatest": _extreme("greater"),
        "least": _extreme("less"),
        "bit_and": _binary(BinaryOperator.BITWISE_AND),
        "bit_or": _binary(BinaryOperator.BITWISE_OR),
        "bit_xor": _binary(BinaryOperator.BITWISE_XOR),
        "bit_not": _unary(UnaryOperator.BIT_INVERT),
    }
)
