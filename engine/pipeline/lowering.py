"""Expressions to instructions. What has none is an input, computed by the device's operators.

Registers hold whole numbers of 64 bits, doubles, or flags. So integers, dates, times, timestamps and decimals
are whole numbers; a decimal of more digits than 64 bits hold makes a program fail where a value does need
them. A program that fails, or an input that cannot be computed, is no error: the operators then compute the
same, and find what SQL says of it.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.engine.formulas.time_units import units_per_day
from bamquery.engine.pipeline.constants import bits_of_double, word_of
from bamquery.engine.pipeline.instructions import Input, Instruction, Operation, Program
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal

_LARGEST: Final = 2**63 - 1
_MOST_MEMBERS: Final = 16
"""Of IN, up to which it is that many comparisons."""
_MOST_SCALE: Final = 22
"""Digits behind the point whose power of ten is a double."""


class Shape(enum.Enum):
    """What a register holds."""

    WORD = "word"
    DOUBLE = "double"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Value:
    """A register.

    Attributes:
        bound: no word is greater, nor less than minus that; 2**63 or more where nothing is known.
    """

    register: int
    shape: Shape
    bound: int = 2**63


class _NotCoveredError(Exception):
    """There is no instruction for an expression; where it can be an input, it is one."""


def shape_of(kind: pa.DataType) -> Shape | None:
    """What registers hold values of a type as; None where they cannot."""
    types = pa.types
    if types.is_boolean(kind):
        return Shape.FLAG
    if types.is_float64(kind) or types.is_float32(kind):
        return Shape.DOUBLE
    if types.is_integer(kind) and kind != pa.uint64():
        return Shape.WORD
    temporal = types.is_date32(kind) or types.is_timestamp(kind) or types.is_time(kind)
    return Shape.WORD if temporal or types.is_decimal128(kind) else None


def bound_of(kind: pa.DataType) -> int:
    """The largest absolute value of a type whose values are words, as they are stored."""
    if isinstance(kind, pa.Decimal128Type):
        return int(10**kind.precision) - 1
    if pa.types.is_unsigned_integer(kind):
        return int(2**kind.bit_width) - 1
    return int(2 ** (kind.bit_width - 1))


class ProgramBuilder:
    """Takes expressions, and has the program that computes them."""

    def __init__(self) -> None:
        self.program = Program()
        self.operations = 0
        """Instructions that compute something."""
        self._known: dict[Expression, Value] = {}
        self._constants: dict[tuple[Operation, int, int], int] = {}
        self._registers = 0

    def add(self, expression: Expression) -> Value | None:
        """The register of an expression; None where its type is none of a register's."""
        if shape_of(expression.type) is None:
            return None
        found = self._known.get(expression)
        if found is None:
            before = self._size()
            try:
                found = self._lower(expression)
            except _NotCoveredError:
                self._shrink(before)
                found = self._input(expression)
            self._known[expression] = found
        return found

    def _size(self) -> tuple[int, ...]:
        program = self.program
        made = (len(program.steps), len(program.inputs), len(self._known), len(self._constants))
        return (*made, self._registers, self.operations)

    def _shrink(self, size: tuple[int, ...]) -> None:
        """Take back what was made since."""
        steps, inputs, known, constants, self._registers, self.operations = size
        del self.program.steps[steps:]
        del self.program.inputs[inputs:]
        while len(self._known) > known:
            self._known.popitem()
        while len(self._constants) > constants:
            self._constants.popitem()

    @property
    def computed(self) -> Collection[Expression]:
        """Expressions whose registers instructions compute."""
        loaded = {given.expression for given in self.program.inputs}
        return {found for found in self._known if found not in loaded}

    def _value(self, expression: Expression) -> Value:
        found = self.add(expression)
        if found is None:
            raise _NotCoveredError
        return found

    def _lower(self, expression: Expression) -> Value:
        match expression:
            case ColumnRef():
                return self._input(expression)
            case Literal():
                return self._literal(expression)
            case Cast(argument=argument, type=kind, try_=False):
                return self._cast(argument, kind)
            case Call(function=name, arguments=arguments, type=kind) if name in _FUNCTIONS:
                return _FUNCTIONS[name](self, arguments, kind)
            case _:
                raise _NotCoveredError

    # Instructions.

    def _emit(
        self, operation: Operation, operands: Sequence[Value] = (), immediate: int = 0, extra: int = 0
    ) -> int:
        register = self._registers
        self._registers += 1
        self.operations += operation not in (Operation.LOAD, Operation.CONSTANT, Operation.CONSTANT_FLAG)
        places = tuple(operand.register for operand in operands)
        self.program.steps.append(Instruction(operation, register, places, immediate, extra))
        return register

    def _input(self, expression: Expression) -> Value:
        kind = expression.type
        shape = shape_of(kind)
        assert shape is not None
        self.program.inputs.append(Input(expression, kind))
        register = self._emit(Operation.LOAD, (), len(self.program.inputs) - 1)
        return Value(register, shape, bound_of(kind) if shape is Shape.WORD else 2**63)

    def _constant(self, operation: Operation, immediate: int, *, null: bool = False) -> int:
        key = (operation, immediate, int(null))
        if key not in self._constants:
            self._constants[key] = self._emit(operation, (), immediate, int(null))
        return self._constants[key]

    def _word(self, number: int) -> Value:
        if not -_LARGEST <= number <= _LARGEST:
            raise _NotCoveredError
        return Value(self._constant(Operation.CONSTANT, number), Shape.WORD, abs(number))

    def _literal(self, literal: Literal) -> Value:
        shape = shape_of(literal.type)
        assert shape is not None
        if shape is Shape.FLAG:
            null, flag = not literal.value.is_valid, bool(literal.value.as_py())
            return Value(self._constant(Operation.CONSTANT_FLAG, int(flag), null=null), shape)
        if not literal.value.is_valid:
            return Value(self._constant(Operation.CONSTANT, 0, null=True), shape, 0)
        if shape is Shape.DOUBLE:
            return Value(self._constant(Operation.CONSTANT, bits_of_double(literal.value.as_py())), shape)
        return self._word(word_of(literal.value))

    def _require_fit(self, value: Value, kind: pa.DataType) -> Value:
        """The value, which must be one of the type; nothing is asked where it certainly is."""
        low, high = _range_of(kind)
        if value.bound <= min(high, -low):
            return value
        if high >= _LARGEST:
            return Value(value.register, Shape.WORD, min(value.bound, 2**63))
        register = self._emit(Operation.REQUIRE_RANGE, (value,), low, high)
        return Value(register, Shape.WORD, max(high, -low))

    # Functions.

    def _words(self, arguments: Sequence[Expression]) -> list[Value]:
        values = [self._value(argument) for argument in arguments]
        if any(value.shape is not Shape.WORD for value in values):
            raise _NotCoveredError
        return values

    def _combine(self, name: str, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        """A sum, a difference or a product."""
        if len(arguments) != 2:
            raise _NotCoveredError
        word, double, bound = _ARITHMETIC[name]
        if pa.types.is_float64(kind) and all(a.type == kind for a in arguments):
            return Value(self._emit(double, [self._value(a) for a in arguments]), Shape.DOUBLE)
        if isinstance(kind, pa.Decimal128Type):
            sides = [
                self._decimal(argument, None if name == "multiply" else kind.scale) for argument in arguments
            ]
            scale = sum(_scale_of(a.type) for a in arguments) if name == "multiply" else kind.scale
            if scale != kind.scale:
                raise _NotCoveredError
        elif pa.types.is_integer(kind) and all(a.type == kind for a in arguments):
            sides = self._words(arguments)
        else:
            raise _NotCoveredError
        made = Value(self._emit(word, sides), Shape.WORD, bound(sides[0].bound, sides[1].bound))
        return self._require_fit(made, kind)

    def _decimal(self, argument: Expression, scale: int | None) -> Value:
        """A decimal's unscaled value, with so many digits behind the point (None: its own)."""
        if not pa.types.is_decimal128(argument.type):
            raise _NotCoveredError
        value = self._value(argument)
        return value if scale is None else self._scale_up(value, scale - _scale_of(argument.type))

    def _scale_up(self, value: Value, digits: int) -> Value:
        if digits < 0:
            raise _NotCoveredError
        if not digits:
            return value
        factor = self._word(10**digits)
        register = self._emit(Operation.MULTIPLY, (value, factor))
        return Value(register, Shape.WORD, value.bound * 10**digits)

    def _divide(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        if not pa.types.is_float64(kind) or any(argument.type != kind for argument in arguments):
            raise _NotCoveredError
        return Value(self._emit(Operation.DIVIDE_DOUBLES, [self._value(a) for a in arguments]), Shape.DOUBLE)

    def _whole_division(
        self, operation: Operation, arguments: Sequence[Expression], kind: pa.DataType
    ) -> Value:
        if not pa.types.is_signed_integer(kind) or any(argument.type != kind for argument in arguments):
            raise _NotCoveredError
        sides = self._words(arguments)
        # The quotient of the least number and -1 is none of the type, whichever of the two is asked for.
        quotient = Value(self._emit(Operation.QUOTIENT, sides), Shape.WORD, bound_of(kind))
        low, high = _range_of(kind)
        if high < _LARGEST:
            quotient = Value(
                self._emit(Operation.REQUIRE_RANGE, (quotient,), low, high), Shape.WORD, bound_of(kind)
            )
        if operation is Operation.QUOTIENT:
            return quotient
        return Value(self._emit(operation, sides), Shape.WORD, bound_of(kind))

    def _negate(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        (argument,) = arguments
        if argument.type != kind:
            raise _NotCoveredError
        if pa.types.is_float64(kind):
            return Value(self._emit(Operation.NEGATE_DOUBLES, (self._value(argument),)), Shape.DOUBLE)
        if not (pa.types.is_integer(kind) or pa.types.is_decimal128(kind)):
            raise _NotCoveredError
        (value,) = self._words(arguments)
        register = self._emit(Operation.SUBTRACT, (self._word(0), value))
        return self._require_fit(Value(register, Shape.WORD, value.bound), kind)

    def _absolute(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        (argument,) = arguments
        if argument.type != kind:
            raise _NotCoveredError
        if pa.types.is_float64(kind):
            return Value(self._emit(Operation.ABSOLUTE_DOUBLES, (self._value(argument),)), Shape.DOUBLE)
        if not (pa.types.is_integer(kind) or pa.types.is_decimal128(kind)):
            raise _NotCoveredError
        (value,) = self._words(arguments)
        register = self._emit(Operation.ABSOLUTE, (value,))
        return self._require_fit(Value(register, Shape.WORD, value.bound), kind)

    def _compare(self, name: str, arguments: Sequence[Expression]) -> Value:
        one, other = arguments
        if one.type != other.type:
            raise _NotCoveredError
        words, doubles, swapped = _COMPARISONS[name]
        sides = [self._value(one), self._value(other)]
        if swapped:
            sides.reverse()
        if sides[0].shape is Shape.FLAG:
            raise _NotCoveredError
        operation = words if sides[0].shape is Shape.WORD else doubles
        return Value(self._emit(operation, sides), Shape.FLAG)

    def _junction(self, operation: Operation, arguments: Sequence[Expression]) -> Value:
        found = self._value(arguments[0])
        for argument in arguments[1:]:
            found = Value(self._emit(operation, (found, self._value(argument))), Shape.FLAG)
        return found

    def _is_null(self, operation: Operation, arguments: Sequence[Expression]) -> Value:
        return Value(self._emit(operation, [self._value(argument) for argument in arguments]), Shape.FLAG)

    def _not(self, arguments: Sequence[Expression]) -> Value:
        return Value(self._emit(Operation.NOT, [self._value(argument) for argument in arguments]), Shape.FLAG)

    def _membership(self, arguments: Sequence[Expression]) -> Value:
        value, *members = arguments
        if len(members) > _MOST_MEMBERS or not all(isinstance(member, Literal) for member in members):
            raise _NotCoveredError
        found: Value | None = None
        for member in members:
            equal = self._compare("equal", (value, member))
            found = equal if found is None else Value(self._emit(Operation.OR, (found, equal)), Shape.FLAG)
        if found is None:
            raise _NotCoveredError
        return found

    def _case(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        results = (*arguments[1::2], arguments[-1])
        if any(result.type != kind for result in results):
            raise _NotCoveredError
        found = self._value(arguments[-1])
        for condition, result in reversed(list(zip(arguments[:-1:2], arguments[1::2], strict=True))):
            asked, chosen = self._value(condition), self._value(result)
            operation = Operation.CHOOSE_FLAG if found.shape is Shape.FLAG else Operation.CHOOSE
            register = self._emit(operation, (asked, chosen, found))
            found = Value(register, found.shape, max(found.bound, chosen.bound))
        return found

    def _coalesce(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        if any(argument.type != kind for argument in arguments) or shape_of(kind) is Shape.FLAG:
            raise _NotCoveredError
        found = self._value(arguments[0])
        for argument in arguments[1:]:
            other = self._value(argument)
            register = self._emit(Operation.COALESCE, (found, other))
            found = Value(register, found.shape, max(found.bound, other.bound))
        return found

    def _date_part(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        unit, column = arguments
        name = str(unit.value.as_py()) if isinstance(unit, Literal) else ""
        dated = pa.types.is_date32(column.type) or pa.types.is_timestamp(column.type)
        if name not in _DATE_PARTS or not dated or not pa.types.is_integer(kind):
            raise _NotCoveredError
        (value,) = self._words([column])
        per_day = units_per_day(column.type)
        if per_day > 1:
            value = Value(self._emit(Operation.FLOOR_DIVIDE, (value,), per_day), Shape.WORD)
        made = Value(self._emit(_DATE_PARTS[name], (value,)), Shape.WORD)
        return self._require_fit(made, kind)

    def _cast(self, argument: Expression, kind: pa.DataType) -> Value:
        own, types = argument.type, pa.types
        if own == kind:
            return self._value(argument)
        if types.is_float64(kind):
            return self._to_double(argument)
        if types.is_integer(kind) and types.is_integer(own):
            return self._require_fit(self._value(argument), kind)
        if types.is_integer(kind) and types.is_boolean(own):
            return Value(self._emit(Operation.FLAG_TO_WORD, (self._value(argument),)), Shape.WORD, 1)
        if not isinstance(kind, pa.Decimal128Type) or not (types.is_integer(own) or types.is_decimal128(own)):
            raise _NotCoveredError
        digits = kind.scale - _scale_of(own)
        value = self._value(argument)
        if digits >= 0:
            return self._require_fit(self._scale_up(value, digits), kind)
        if -digits > 18:
            raise _NotCoveredError
        register = self._emit(Operation.DIVIDE_ROUNDING, (value,), 10**-digits)
        return self._require_fit(Value(register, Shape.WORD, value.bound // 10**-digits + 1), kind)

    def _to_double(self, argument: Expression) -> Value:
        own, types = argument.type, pa.types
        if types.is_float32(own):
            return Value(self._value(argument).register, Shape.DOUBLE)
        if types.is_integer(own):
            return Value(self._emit(Operation.TO_DOUBLE, (self._value(argument),)), Shape.DOUBLE)
        if isinstance(own, pa.Decimal128Type) and 0 < own.scale <= _MOST_SCALE:
            register = self._emit(Operation.DECIMAL_TO_DOUBLE, (self._value(argument),), own.scale)
            return Value(register, Shape.DOUBLE)
        raise _NotCoveredError


def is_covered(expression: Expression) -> bool:
    """Whether instructions compute all of an expression from columns."""
    builder = ProgramBuilder()
    if builder.add(expression) is None:
        return False
    return all(isinstance(given.expression, ColumnRef) for given in builder.program.inputs)


def _scale_of(kind: pa.DataType) -> int:
    return int(kind.scale) if isinstance(kind, pa.Decimal128Type) else 0


def _range_of(kind: pa.DataType) -> tuple[int, int]:
    """Least and greatest word of an integer or decimal type."""
    bound = bound_of(kind)
    if isinstance(kind, pa.Decimal128Type):
        return -bound, bound
    return (0, bound) if pa.types.is_unsigned_integer(kind) else (-bound, bound - 1)


_ARITHMETIC: Final[Mapping[str, tuple[Operation, Operation, Callable[[int, int], int]]]] = MappingProxyType(
    {
        "add": (Operation.ADD, Operation.ADD_DOUBLES, operator.add),
        "subtract": (Operation.SUBTRACT, Operation.SUBTRACT_DOUBLES, operator.add),
        "multiply": (Operation.MULTIPLY, Operation.MULTIPLY_DOUBLES, operator.mul),
    }
)
"""Of whole numbers, of doubles, and how large a result is at most by the bounds of both sides."""
_COMPARISONS: Final[Mapping[str, tuple[Operation, Operation, bool]]] = MappingProxyType(
    {
        "equal": (Operation.EQUAL, Operation.EQUAL_DOUBLES, False),
        "not_equal": (Operation.NOT_EQUAL, Operation.NOT_EQUAL_DOUBLES, False),
        "less": (Operation.LESS, Operation.LESS_DOUBLES, False),
        "less_equal": (Operation.LESS_EQUAL, Operation.LESS_EQUAL_DOUBLES, False),
        "greater": (Operation.LESS, Operation.LESS_DOUBLES, True),
        "greater_equal": (Operation.LESS_EQUAL, Operation.LESS_EQUAL_DOUBLES, True),
    }
)
"""Of whole numbers, of doubles, and whether the sides change places."""
_DATE_PARTS: Final = MappingProxyType(
    {"year": Operation.YEAR, "month": Operation.MONTH, "day": Operation.DAY}
)

_Lowering = Callable[[ProgramBuilder, Sequence[Expression], pa.DataType], Value]


def _functions() -> dict[str, _Lowering]:
    builder = ProgramBuilder
    found: dict[str, _Lowering] = {
        "divide": builder._divide,
        "floor_divide": lambda b, a, k: b._whole_division(Operation.QUOTIENT, a, k),
        "modulo": lambda b, a, k: b._whole_division(Operation.REMAINDER, a, k),
        "negate": builder._negate,
        "abs": builder._absolute,
        "and": lambda b, a, k: b._junction(Operation.AND, a),
        "or": lambda b, a, k: b._junction(Operation.OR, a),
        "not": lambda b, a, k: b._not(a),
        "is_null": lambda b, a, k: b._is_null(Operation.IS_NULL, a),
        "is_not_null": lambda b, a, k: b._is_null(Operation.IS_NOT_NULL, a),
        "in": lambda b, a, k: b._membership(a),
        "case": builder._case,
        "coalesce": builder._coalesce,
        "date_part": builder._date_part,
    }

    def combining(name: str) -> _Lowering:
        return lambda b, a, k: b._combine(name, a, k)

    def comparing(name: str) -> _Lowering:
        return lambda b, a, k: b._compare(name, a)

    found |= {name: combining(name) for name in _ARITHMETIC}
    return found | {name: comparing(name) for name in _COMPARISONS}


_FUNCTIONS: Final[Mapping[str, _Lowering]] = MappingProxyType(_functions())
