"""Functions that libcudf has not as DuckDB has them, arguments that must be constants there, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.plan.expressions import Call, Literal

_NONE: Final = "libcudf has no such function"
_ERRORS: Final = "it has errors that libcudf would pass over"
_REGEX: Final = "libcudf's regular expressions are not those of RE2"
_INTERVALS: Final = "libcudf has no intervals of months"

ABSENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("log2", "log10"), "libcudf has the natural logarithm only"),
        **dict.fromkeys(("even", "gamma", "lgamma", "nextafter", "signbit", "factorial", "bit_count"), _NONE),
        **dict.fromkeys(("trunc", "round_even", "gcd", "lcm", "hex", "bin", "to_base"), _NONE),
        **dict.fromkeys(("shift_left", "shift_right", "unhex", "unbin"), _ERRORS),
        **dict.fromkeys(
            ("substring_at", "text_between", "lpad", "rpad", "split_part", "translate", "overlay"), _NONE
        ),
        **dict.fromkeys(("repeat", "reverse", "concat_ws", "ascii", "unicode", "chr", "like_escape"), _NONE),
        **dict.fromkeys(("ilike_escape", "glob", "md5", "sha1", "sha256", "to_base64", "from_base64"), _NONE),
        **dict.fromkeys(("encode", "decode", "url_encode", "url_decode", "strip_accents"), _NONE),
        **dict.fromkeys(("nfc_normalize", "format_bytes", "format_decimal_bytes", "parse_filename"), _NONE),
        **dict.fromkeys(("parse_dirname", "parse_dirpath", "bar", "levenshtein"), _NONE),
        **dict.fromkeys(("damerau_levenshtein", "hamming", "jaccard", "jaro_similarity"), _NONE),
        **dict.fromkeys(("jaro_winkler_similarity", "strftime", "strptime", "try_strptime"), _NONE),
        **dict.fromkeys(("regexp_matches", "regexp_full_match", "regexp_replace", "regexp_extract"), _REGEX),
        "regexp_escape": _NONE,
        **dict.fromkeys(("make_date", "make_time", "make_timestamp", "from_count", "from_seconds"), _ERRORS),
        **dict.fromkeys(("date_sub", "add_time"), _NONE),
        **dict.fromkeys(("to_interval", "timestamp_difference", "age", "time_bucket"), _INTERVALS),
        **dict.fromkeys(
            ("interval_add", "interval_subtract", "interval_negate", "interval_times"), _INTERVALS
        ),
        **dict.fromkeys(("interval_scale", "interval_divide", "interval_normalize"), _INTERVALS),
        **dict.fromkeys(("interval_part", "interval_seconds", "interval_milliseconds"), _INTERVALS),
        "interval_microseconds": _INTERVALS,
        "interval_order": _INTERVALS,
        "interval_trunc": _INTERVALS,
    }
)
"""Functions of the CPU that are refused here."""

AGGREGATES: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("fsum", "favg"), "libcudf's sums round each addition")
)
"""Aggregates of the CPU that are refused here."""

CONSTANT_FROM: Final[Mapping[str, int]] = MappingProxyType(
    {
        **dict.fromkeys(("like", "ilike", "starts_with", "ends_with", "contains"), 1),
        **dict.fromkeys(("trim_of", "ltrim_of", "rtrim_of", "left", "right", "replace", "position"), 1),
        **dict.fromkeys(("add_interval", "subtract_interval"), 1),
    }
)
"""The first argument that must be a literal."""


def unsupported_reason(call: Call) -> str | None:
    """Why the function cannot be computed here, or None."""
    if call.function in ABSENT:
        return ABSENT[call.function]
    if call.function.startswith("bit_") and pa.types.is_decimal(call.type):
        return "libcudf's bits are those of integers of up to 64"
    first = CONSTANT_FROM.get(call.function)
    if first is not None and not all(isinstance(a, Literal) for a in call.arguments[first:]):
        return "its arguments after the first must be constants there"
    return None
