"""Scalar functions of numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bamquery.function_catalog.contract import CPU_ONLY, PYTHON, WITH_ERRORS, FunctionContract
from bamquery.function_catalog.entry import Entry, Section

_ONE: Final = "(x DOUBLE) -> DOUBLE"
_TEST: Final = "(x DOUBLE) -> BOOLEAN | (x FLOAT) -> BOOLEAN"
_TEST_OF_MOMENTS: Final = f"{_TEST} | (x DATE) -> BOOLEAN | (x TIMESTAMP) -> BOOLEAN"
_DIGITS: Final = "(n BIGINT) -> VARCHAR | (n HUGEINT) -> VARCHAR | (text VARCHAR) -> VARCHAR"
_INTEGERS: Final = "(a BIGINT, b BIGINT) -> BIGINT | (a HUGEINT, b HUGEINT) -> HUGEINT"
_ALIGNED: Final = FunctionContract("decimals: arguments already at the result's type")
_SCALES_ADD: Final = FunctionContract("decimals: the scale is the sum of the arguments' scales")
_DIVISORS: Final = replace(CPU_ONLY, row_by_row="hugeint")
_LOGARITHM: Final = FunctionContract(cuda_refusal="libcudf has the natural logarithm only")
_OF_DIGITS: Final = replace(WITH_ERRORS, row_by_row="always")

SECTION: Final = Section(
    "Numbers",
    "scalar",
    (
        Entry("abs", "(x NUMERIC) -> NUMERIC", "The value without its sign.", example="abs(-17.4)"),
        Entry(
            "sign",
            "(x NUMERIC) -> TINYINT",
            "-1, 0 or 1, as the number is below, at or above zero; 0 of NaN.",
        ),
        Entry(
            "ceil ceiling",
            "(x DOUBLE) -> DOUBLE | (x DECIMAL) -> DECIMAL",
            "The next whole number above.",
            example="ceil(17.4)",
        ),
        Entry(
            "floor",
            "(x DOUBLE) -> DOUBLE | (x DECIMAL) -> DECIMAL",
            "The next whole number below.",
            example="floor(17.4)",
        ),
        Entry(
            "round",
            "(x NUMERIC [, digits INTEGER]) -> NUMERIC",
            "The number with so many digits (a constant) behind the point, halves away from zero.",
            FunctionContract("decimal(p, s) to decimal(p, min(s, max(digits, 0)))"),
            example="round(42.4332, 2)",
        ),
        Entry(
            "round_even roundbankers",
            "(x NUMERIC, digits INTEGER) -> NUMERIC",
            "The number with so many digits (a constant) behind the point, halves to the even digit.",
            CPU_ONLY,
            example="round_even(24.5, 0)",
        ),
        Entry(
            "trunc",
            "(x NUMERIC [, digits INTEGER]) -> NUMERIC",
            "The number cut to so many digits (a constant), toward zero.",
            CPU_ONLY,
        ),
        Entry("even", _ONE, "The next even number away from zero.", CPU_ONLY),
        Entry("add", "(x NUMERIC, y NUMERIC) -> NUMERIC", "x + y.", _ALIGNED),
        Entry("subtract", "(x NUMERIC, y NUMERIC) -> NUMERIC", "x - y.", _ALIGNED),
        Entry("multiply", "(x NUMERIC, y NUMERIC) -> NUMERIC", "x * y.", _SCALES_ADD),
        Entry(
            "divide",
            "(x NUMERIC, y NUMERIC) -> NUMERIC",
            "x // y: the quotient without its fraction; NULL where y = 0.",
            FunctionContract(),
            calls="floor_divide",
        ),
        Entry(
            "mod",
            "(x NUMERIC, y NUMERIC) -> NUMERIC",
            "x % y: the remainder, with the sign of x; NULL where y = 0, of floats NaN.",
            FunctionContract(),
            calls="modulo",
        ),
        Entry(
            "fmod",
            "(x NUMERIC, y NUMERIC) -> NUMERIC",
            "The remainder of a division that rounds down.",
            calls="subtract multiply floor divide",
        ),
        Entry(
            "fdiv",
            "(x NUMERIC, y NUMERIC) -> NUMERIC",
            "The quotient of a division, rounded down.",
            calls="floor divide",
        ),
        Entry("power pow", "(x DOUBLE, y DOUBLE) -> DOUBLE", "x to the power of y.", example="power(2, 10)"),
        Entry("sqrt", _ONE, "The square root; NaN below 0."),
        Entry("cbrt", _ONE, "The cube root."),
        Entry("exp", _ONE, "e to the power of x."),
        Entry("ln", _ONE, "The natural logarithm; NaN below 0."),
        Entry("log10", _ONE, "The logarithm to base 10.", _LOGARITHM),
        Entry("log2", _ONE, "The logarithm to base 2.", _LOGARITHM),
        Entry(
            "log",
            "(x DOUBLE) -> DOUBLE | (base DOUBLE, x DOUBLE) -> DOUBLE",
            "The logarithm to a base, or to 10 if none is given.",
            calls="log10 divide",
            call="log([base,] x)",
        ),
        Entry("pi", "() -> DOUBLE", "3.14159...", calls=""),
        Entry("sin", _ONE, "The sine of an angle in radians."),
        Entry("cos", _ONE, "The cosine of an angle in radians."),
        Entry("tan", _ONE, "The tangent of an angle in radians."),
        Entry("cot", _ONE, "The cotangent of an angle in radians."),
        Entry("asin", _ONE, "The angle in radians whose sine this is."),
        Entry("acos", _ONE, "The angle in radians whose cosine this is."),
        Entry("atan", _ONE, "The angle in radians whose tangent this is."),
        Entry("atan2", "(y DOUBLE, x DOUBLE) -> DOUBLE", "The angle in radians of the point (x, y)."),
        Entry("sinh", _ONE, "The hyperbolic sine."),
        Entry("cosh", _ONE, "The hyperbolic cosine."),
        Entry("tanh", _ONE, "The hyperbolic tangent."),
        Entry("asinh", _ONE, "The inverse of sinh."),
        Entry("acosh", _ONE, "The inverse of cosh."),
        Entry("atanh", _ONE, "The inverse of tanh."),
        Entry("degrees", _ONE, "Radians in degrees.", calls="multiply"),
        Entry("radians", _ONE, "Degrees in radians.", calls="multiply"),
        Entry("gamma", _ONE, "The gamma function: of n + 1 the factorial of n.", PYTHON),
        Entry("lgamma", _ONE, "The logarithm of the gamma function.", PYTHON),
        Entry(
            "factorial",
            "(n INTEGER) -> HUGEINT",
            "1 * 2 * ... * n, for n from 0 to 33; others are an error.",
            CPU_ONLY,
        ),
        Entry("gcd greatest_common_divisor", _INTEGERS, "The greatest integer that divides both.", _DIVISORS),
        Entry(
            "lcm least_common_multiple",
            _INTEGERS,
            "The least integer that both divide; an error where it does not fit.",
            _DIVISORS,
        ),
        Entry("isnan", _TEST, "Whether a float is not a number."),
        Entry("isinf", _TEST_OF_MOMENTS, "Whether a float is infinite; of dates and timestamps none is."),
        Entry("isfinite", _TEST_OF_MOMENTS, "Whether a float is a number and not infinite."),
        Entry("signbit", _TEST, "Whether a float is below zero, or -0.", CPU_ONLY),
        Entry(
            "nextafter",
            "(x DOUBLE, y DOUBLE) -> DOUBLE | (x FLOAT, y FLOAT) -> FLOAT",
            "The float next to x on the way to y.",
            CPU_ONLY,
        ),
        Entry(
            "xor",
            "(a INTEGRAL, b INTEGRAL) -> INTEGRAL",
            "The bits that differ; `a & b`, `a | b` and `~a` are there, too.",
            calls="bit_xor",
        ),
        Entry("bit_count", "(a INTEGRAL) -> TINYINT", "How many bits are set.", CPU_ONLY),
        Entry(
            "hex to_hex",
            f"{_DIGITS} | (blob BLOB) -> VARCHAR",
            "Hexadecimal digits of an integer in two's complement, or of a text's bytes.",
            PYTHON,
            example="hex(42)",
        ),
        Entry("bin to_binary", _DIGITS, "Binary digits of an integer, or of a text's bytes.", PYTHON),
        Entry(
            "to_base",
            "(n BIGINT, base INTEGER [, length INTEGER]) -> VARCHAR",
            "Digits to a base from 2 to 36, with zeros before them up to a length.",
            PYTHON,
            example="to_base(42, 16)",
        ),
        Entry(
            "unhex from_hex",
            "(text VARCHAR) -> BLOB",
            "The bytes that hexadecimal digits stand for; others are an error.",
            _OF_DIGITS,
        ),
        Entry(
            "unbin from_binary",
            "(text VARCHAR) -> BLOB",
            "The bytes that binary digits stand for; others are an error.",
            _OF_DIGITS,
        ),
    ),
    notes="`a << b` and `a >> b`, as `bit_count`, are not there on a GPU. Of HUGEINT they and `&`, `|`\n"
    "and `~` call Python as `xor` does, and `*`, `//` and `%` where values do not fit in 64 bits.",
)
