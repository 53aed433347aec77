"""The scalar functions of `function_catalog.plan_functions` on this device, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bamquery.engine.cpu import comparisons
from bamquery.engine.cpu.expressions import interpolation
from bamquery.engine.cpu.kernels import Implementation, compute
from bamquery.engine.cpu.numeric import arithmetic, bits, mathematics, rounding
from bamquery.engine.cpu.strings import basic, editing, encodings, paths, patterns, similarity
from bamquery.engine.cpu.temporal import date_parts as temporal
from bamquery.engine.cpu.temporal import instants, interval_parts, strptime, time_buckets
from bamquery.engine.cpu.temporal import interval_arithmetic as intervals
from bamquery.engine.cpu.temporal import strftime as formats

_NULLS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "not": lambda arguments, kind: compute("invert", arguments[0]),
        "is_null": lambda arguments, kind: compute("is_null", arguments[0]),
        "is_not_null": lambda arguments, kind: compute("is_valid", arguments[0]),
    }
)

FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        **arithmetic.FUNCTIONS,
        **rounding.FUNCTIONS,
        **comparisons.FUNCTIONS,
        **basic.FUNCTIONS,
        **temporal.FUNCTIONS,
        **mathematics.FUNCTIONS,
        **bits.FUNCTIONS,
        **editing.FUNCTIONS,
        **patterns.FUNCTIONS,
        **encodings.FUNCTIONS,
        **similarity.FUNCTIONS,
        **instants.FUNCTIONS,
        **interpolation.FUNCTIONS,
        **intervals.FUNCTIONS,
        **interval_parts.FUNCTIONS,
        **time_buckets.FUNCTIONS,
        **formats.FUNCTIONS,
        **strptime.FUNCTIONS,
        **paths.FUNCTIONS,
        **_NULLS,
    }
)
"""All but `and`, `or`, `coalesce` and `case`, which decide which rows their arguments are computed for."""
