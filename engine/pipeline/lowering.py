"""Expressions to instructions. What has none is an input, computed by the device's operators.

Registers hold whole numbers of 64 bits, doubles, or flags. So integers, dates, times, timestamps and decimals
are whole numbers; a decimal of more digits than 64 bits hold makes a program fail where a value does need
them. A program that fails, or an input that cannot be computed, is no error: the operators then compute the
same, and find what SQL says of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.engine.pipeline.constants import bits_of_double, word_of
from bamquery.engine.pipeline.instructions import Input, Instruction, Operation, Program
from bamquery.engine.pipeline.registers import (
    LARGEST,
    NotCoveredError,
    Shape,
    Value,
    bound_of,
    range_of,
    shape_of,
)
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal

_MOST_MEMBERS: Final = 16
"""Of IN, up to which it is that many comparisons."""
_MOST_SCALE: Final = 22
"""Digits behind the point whose power of ten is a double."""
_CALENDAR: Final = 30
"""Additions and divisions from days to the part of a date."""
_OPERATIONS: Final[Mapping[Operation, int]] = MappingProxyType(
    {
        **dict.fromkeys((Operation.LOAD, Operation.CONSTANT, Operation.CONSTANT_FLAG), 0),
        **dict.fromkeys((Operation.YEAR, Operation.MONTH, Operation.DAY, Operation.DAY_OF_YEAR), _CALENDAR),
    }
)
"""What an instruction computes, where it is not one operation."""


class ProgramBuilder:
    """Takes expressions, and has the program that computes them."""

    def __init__(self) -> None:
        self.program = Program()
        self.operations = 0
        """Instructions that compute something; those of the calendar count as what they are made of."""
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
            except NotCoveredError:
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

    def value(self, expression: Expression) -> Value:
        """As `add`.

        Raises:
            NotCoveredError: its type is none of a register's.
        """
        found = self.add(expression)
        if found is None:
            raise NotCoveredError
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
                raise NotCoveredError

    # Instructions.

    def emit(
        self, operation: Operation, operands: Sequence[Value] = (), immediate: int = 0, extra: int = 0
    ) -> int:
        """The register of one more instruction."""
        register = self._registers
        self._registers += 1
        self.operations += _OPERATIONS.get(operation, 1)
        places = tuple(operand.register for operand in operands)
        self.program.steps.append(Instruction(operation, register, places, immediate, extra))
        return register

    def _input(self, expression: Expression) -> Value:
        kind = expression.type
        shape = shape_of(kind)
        assert shape is not None
        self.program.inputs.append(Input(expression, kind))
        register = self.emit(Operation.LOAD, (), len(self.program.inputs) - 1)
        return Value(register, shape, bound_of(kind) if shape is Shape.WORD else 2**63)

    def _constant(self, operation: Operation, immediate: int, *, null: bool = False) -> int:
        key = (operation, immediate, int(null))
        if key not in self._constants:
            self._constants[key] = self.emit(operation, (), immediate, int(null))
        return self._constants[key]

    def word(self, number: int) -> Value:
        """The register of a constant.

        Raises:
            NotCoveredError: it has more than 64 bits.
        """
        if not -LARGEST <= number <= LARGEST:
            raise NotCoveredError
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
        return self.word(word_of(literal.value))

    def require_fit(self, value: Value, kind: pa.DataType) -> Value:
        """The value, which must be one of the type; nothing is asked where it certainly is."""
        low, high = range_of(kind)
        if value.bound <= min(high, -low):
            return value
        if high >= LARGEST:
            return Value(value.register, Shape.WORD, min(value.bound, 2**63))
        register = self.emit(Operation.REQUIRE_RANGE, (value,), low, high)
        return Value(register, Shape.WORD, max(high, -low))

    # Functions.

    def _words(self, arguments: Sequence[Expression]) -> list[Value]:
        values = [self.value(argument) for argument in arguments]
        if any(value.shape is not Shape.WORD for value in values):
            raise NotCoveredError
        return values

    def _combine(self, name: str, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        """A sum, a difference or a product."""
        if len(arguments) != 2:
            raise NotCoveredError
        word, double, bound = _ARITHMETIC[name]
        if pa.types.is_float64(kind) and all(a.type == kind for a in arguments):
            return Value(self.emit(double, [self.value(a) for a in arguments]), Shape.DOUBLE)
        if isinstance(kind, pa.Decimal128Type):
            sides = [
                self._decimal(argument, None if name == "multiply" else kind.scale) for argument in arguments
            ]
            scale = sum(_scale_of(a.type) for a in arguments) if name == "multiply" else kind.scale
            if scale != kind.scale:
                raise NotCoveredError
        elif pa.types.is_integer(kind) and all(a.type == kind for a in arguments):
            sides = self._words(arguments)
        else:
            raise NotCoveredError
        made = Value(self.emit(word, sides), Shape.WORD, bound(sides[0].bound, sides[1].bound))
        return self.require_fit(made, kind)

    def _decimal(self, argument: Expression, scale: int | None) -> Value:
        """A decimal's unscaled value, with so many digits behind the point (None: its own)."""
        if not pa.types.is_decimal128(argument.type):
            raise NotCoveredError
        value = self.value(argument)
        return value if scale is None else self._scale_up(value, scale - _scale_of(argument.type))

    def _scale_up(self, value: Value, digits: int) -> Value:
        if digits < 0:
            raise NotCoveredError
        if not digits:
            return value
        factor = self.word(10**digits)
        register = self.emit(Operation.MULTIPLY, (value, factor))
        return Value(register, Shape.WORD, value.bound * 10**digits)

    def _divide(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        if not pa.types.is_float64(kind) or any(argument.type != kind for argument in arguments):
            raise NotCoveredError
        return Value(self.emit(Operation.DIVIDE_DOUBLES, [self.value(a) for a in arguments]), Shape.DOUBLE)

    def _whole_division(
        self, operation: Operation, arguments: Sequence[Expression], kind: pa.DataType
    ) -> Value:
        if not pa.types.is_signed_integer(kind) or any(argument.type != kind for argument in arguments):
            raise NotCoveredError
        sides = self._words(arguments)
        # The quotient of the least number and -1 is none of the type, whichever of the two is asked for.
        quotient = Value(self.emit(Operation.QUOTIENT, sides), Shape.WORD, bound_of(kind))
        low, high = range_of(kind)
        if high < LARGEST:
            quotient = Value(
                self.emit(Operation.REQUIRE_RANGE, (quotient,), low, high), Shape.WORD, bound_of(kind)
            )
        if operation is Operation.QUOTIENT:
            return quotient
        return Value(self.emit(operation, sides), Shape.WORD, bound_of(kind))

    def _negate(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        (argument,) = arguments
        if argument.type != kind:
            raise NotCoveredError
        if pa.types.is_float64(kind):
            return Value(self.emit(Operation.NEGATE_DOUBLES, (self.value(argument),)), Shape.DOUBLE)
        if not (pa.types.is_integer(kind) or pa.types.is_decimal128(kind)):
            raise NotCoveredError
        (value,) = self._words(arguments)
        register = self.emit(Operation.SUBTRACT, (self.word(0), value))
        return self.require_fit(Value(register, Shape.WORD, value.bound), kind)

    def _absolute(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        (argument,) = arguments
        if argument.type != kind:
            raise NotCoveredError
        if pa.types.is_float64(kind):
            return Value(self.emit(Operation.ABSOLUTE_DOUBLES, (self.value(argument),)), Shape.DOUBLE)
        if not (pa.types.is_integer(kind) or pa.types.is_decimal128(kind)):
            raise NotCoveredError
        (value,) = self._words(arguments)
        register = self.emit(Operation.ABSOLUTE, (value,))
        return self.require_fit(Value(register, Shape.WORD, value.bound), kind)

    def _compare(self, name: str, arguments: Sequence[Expression]) -> Value:
        one, other = arguments
        if one.type != other.type:
            raise NotCoveredError
        words, doubles, swapped = _COMPARISONS[name]
        sides = [self.value(one), self.value(other)]
        if swapped:
            sides.reverse()
        if sides[0].shape is Shape.FLAG:
            raise NotCoveredError
        operation = words if sides[0].shape is Shape.WORD else doubles
        return Value(self.emit(operation, sides), Shape.FLAG)

    def _junction(self, operation: Operation, arguments: Sequence[Expression]) -> Value:
        found = self.value(arguments[0])
        for argument in arguments[1:]:
            found = Value(self.emit(operation, (found, self.value(argument))), Shape.FLAG)
        return found

    def _is_null(self, operation: Operation, arguments: Sequence[Expression]) -> Value:
        return Value(self.emit(operation, [self.value(argument) for argument in arguments]), Shape.FLAG)

    def _not(self, arguments: Sequence[Expression]) -> Value:
        return Value(self.emit(Operation.NOT, [self.value(argument) for argument in arguments]), Shape.FLAG)

    def _membership(self, arguments: Sequence[Expression]) -> Value:
        value, *members = arguments
        if len(members) > _MOST_MEMBERS or not all(isinstance(member, Literal) for member in members):
            raise NotCoveredError
        found: Value | None = None
        for member in members:
            equal = self._compare("equal", (value, member))
            found = equal if found is None else Value(self.emit(Operation.OR, (found, equal)), Shape.FLAG)
        if found is None:
            raise NotCoveredError
        return found

    def _case(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        results = (*arguments[1::2], arguments[-1])
        if any(result.type != kind for result in results):
            raise NotCoveredError
        found = self.value(arguments[-1])
        for condition, result in reversed(list(zip(arguments[:-1:2], arguments[1::2], strict=True))):
            asked, chosen = self.value(condition), self.value(result)
            operation = Operation.CHOOSE_FLAG if found.shape is Shape.FLAG else Operation.CHOOSE
            register = self.emit(operation, (asked, chosen, found))
            found = Value(register, found.shape, max(found.bound, chosen.bound))
        return found

    def _coalesce(self, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
        if any(argument.type != kind for argument in arguments) or shape_of(kind) is Shape.FLAG:
            raise NotCoveredError
        found = self.value(arguments[0])
        for argument in arguments[1:]:
            other = self.value(argument)
            register = self.emit(Operation.COALESCE, (found, other))
            found = Value(register, found.shape, max(found.bound, other.bound))
        return found

    def _cast(self, argument: Expression, kind: pa.DataType) -> Value:
        own, types = argument.type, pa.types
        if own == kind:
            return self.value(argument)
        if types.is_float64(kind):
            return self._to_double(argument)
        if types.is_integer(kind) and types.is_integer(own):
            return self.require_fit(self.value(argument), kind)
        if types.is_integer(kind) and types.is_boolean(own):
            return Value(self.emit(Operation.FLAG_TO_WORD, (self.value(argument),)), Shape.WORD, 1)
        if types.is_date32(kind) or types.is_timestamp(kind):
            from bamquery.engine.pipeline.temporal import cast_of_moment  # noqa: PLC0415 (few have moments)

            return cast_of_moment(self, argument, kind)
        if not isinstance(kind, pa.Decimal128Type) or not (types.is_integer(own) or types.is_decimal128(own)):
            raise NotCoveredError
        digits = kind.scale - _scale_of(own)
        value = self.value(argument)
        if digits >= 0:
            return self.require_fit(self._scale_up(value, digits), kind)
        if -digits > 18:
            raise NotCoveredError
        register = self.emit(Operation.DIVIDE_ROUNDING, (value,), 10**-digits)
        return self.require_fit(Value(register, Shape.WORD, value.bound // 10**-digits + 1), kind)

    def _to_double(self, argument: Expression) -> Value:
        own, types = argument.type, pa.types
        if types.is_float32(own):
            return Value(self.value(argument).register, Shape.DOUBLE)
        if types.is_integer(own):
            return Value(self.emit(Operation.TO_DOUBLE, (self.value(argument),)), Shape.DOUBLE)
        if isinstance(own, pa.Decimal128Type) and 0 < own.scale <= _MOST_SCALE:
            register = self.emit(Operation.DECIMAL_TO_DOUBLE, (self.value(argument),), own.scale)
            return Value(register, Shape.DOUBLE)
        raise NotCoveredError


def is_covered(expression: Expression) -> bool:
    """Whether instructions compute all of an expression from columns."""
    builder = ProgramBuilder()
    if builder.add(expression) is None:
        return False
    return all(isinstance(given.expression, ColumnRef) for given in builder.program.inputs)


def _scale_of(kind: pa.DataType) -> int:
    return int(kind.scale) if isinstance(kind, pa.Decimal128Type) else 0


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
    }

    def combining(name: str) -> _Lowering:
        return lambda b, a, k: b._combine(name, a, k)

    def of_moments(name: str) -> _Lowering:
        def lower(b: ProgramBuilder, a: Sequence[Expression], k: pa.DataType) -> Value:
            from bamquery.engine.pipeline.temporal import TEMPORAL  # noqa: PLC0415 (few have moments)

            return TEMPORAL[name](b, a, k)

        return lower

    def comparing(name: str) -> _Lowering:
        return lambda b, a, k: b._compare(name, a)

    found |= {name: combining(name) for name in _ARITHMETIC}
    found |= {name: of_moments(name) for name in ("date_part", "date_trunc", "date_diff")}
    return found | {name: comparing(name) for name in _COMPARISONS}


_FUNCTIONS: Final[Mapping[str, _Lowering]] = MappingProxyType(_functions())
