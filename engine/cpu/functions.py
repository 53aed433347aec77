"""The scalar functions of `bamquery.plan.functions` on this device, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bamquery.engine.cpu import (
    arithmetic,
    bits,
    comparisons,
    encodings,
    formats,
    instants,
    interpolation,
    intervals,
    mathematics,
    paths,
    patterns,
    rounding,
    similarity,
    strings,
    strptime,
    temporal,
    texts,
)
from bamquery.engine.cpu.kernels import Implementation, compute

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
        **strings.FUNCTIONS,
        **temporal.FUNCTIONS,
        **mathematics.FUNCTIONS,
        **bits.FUNCTIONS,
        **texts.FUNCTIONS,
        **patterns.FUNCTIONS,
        **encodings.FUNCTIONS,
        **similarity.FUNCTIONS,
        **instants.FUNCTIONS,
        **interpolation.FUNCTIONS,
        **intervals.FUNCTIONS,
        **formats.FUNCTIONS,
        **strptime.FUNCTIONS,
        **paths.FUNCTIONS,
        **_NULLS,
    }
)
"""All but `and`, `or`, `coalesce` and `case`, which decide which rows their arguments are computed for."""

NULLS_MATTER: Final = frozenset(
    (
        *("is_null", "is_not_null", "is_distinct_from", "is_not_distinct_from"),
        *("greatest", "least", "concat_ws"),
    )
)
"""Functions whose answer for a null need not be null."""
