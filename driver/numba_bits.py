"""A number and its bits, for compiled code: written once, for numba's processor and for its GPU."""

from __future__ import annotations

from typing import Any


def bit_casts(extending: Any, types: Any) -> tuple[Any, Any]:
    """Intrinsics: `as_bits(number)`, in the low ones of 64, and `from_bits(bits, dtype)`, the number again.

    `extending` and `types` are numba's modules, or numba-cuda's, which has its own of both.
    """

    @extending.intrinsic
    def as_bits(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            small = context.get_value_type(getattr(types, f"uint{value.bitwidth}"))
            return builder.zext(builder.bitcast(arguments[0], small), context.get_value_type(types.uint64))

        return types.uint64(value), generate

    @extending.intrinsic
    def from_bits(typing_context: Any, bits: Any, dtype: Any) -> Any:
        number = dtype.dtype

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            small = context.get_value_type(getattr(types, f"uint{number.bitwidth}"))
            return builder.bitcast(builder.trunc(arguments[0], small), context.get_value_type(number))

        return number(bits, dtype), generate

    return as_bits, from_bits
