"""Scalar functions by theme, beyond those that every plan needs; see `bamquery.plan.functions`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from bamquery.plan.function_contract import NO_INTERVALS, FunctionContract

_OF_DOUBLE: Final = (
    *("cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "cot", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh"),
)
_LOGARITHM: Final = FunctionContract("double", cuda_refusal="libcudf has the natural logarithm only")
_CPU_ONLY: Final = partial(FunctionContract, cuda_refusal="libcudf has no such function")
_PYTHON_ONLY: Final = partial(_CPU_ONLY, row_by_row=True)
_WITH_ERRORS: Final = partial(FunctionContract, cuda_refusal="it has errors that libcudf would pass over")
_OF_REGEX: Final = partial(
    FunctionContract, cuda_refusal="libcudf's regular expressions are not those of RE2"
)
_OF_INTERVALS: Final = partial(FunctionContract, cuda_refusal=NO_INTERVALS)

NUMBERS: Final[Mapping[str, FunctionContract]] = MappingProxyType(
    {
        **dict.fromkeys(_OF_DOUBLE, FunctionContract("double")),
        **dict.fromkeys(("log2", "log10"), _LOGARITHM),
        **dict.fromkeys(("gamma", "lgamma"), _PYTHON_ONLY("double")),
        "atan2": FunctionContract("double, double"),
        "even": _CPU_ONLY("double: the next even number away from zero"),
        "nextafter": _CPU_ONLY("nextafter(a, b): the float next to a in the direction of b; floats, doubles"),
        "interpolate": FunctionContract(
            "interpolate(a, b, share double), none null: from a to b by a share of 0 to 1, as"
            " quantile_cont does: of floats, decimals, dates, times and timestamps; only operators make it"
        ),
        "sign": FunctionContract("-1, 0 or 1 of an integer or float, as int8; 0 of NaN"),
        "isnan": FunctionContract("float or double"),
        "isinf": FunctionContract("float or double"),
        "isfinite": FunctionContract("float or double"),
        "signbit": _CPU_ONLY("whether a float or double is below zero, or -0"),
        "trunc": _CPU_ONLY("trunc(a, n int32 literal): toward zero; types as of round"),
        "round_even": _CPU_ONLY("round_even(a, n int32 literal): halves to even; types as of round"),
        "gcd": _CPU_ONLY("two int64, or two decimal(38, 0)"),
        "lcm": _CPU_ONLY("two int64, or two decimal(38, 0); ExecutionError where it does not fit"),
        "factorial": _CPU_ONLY("of an int32 as decimal(38, 0); ExecutionError below 0 and above 33"),
        "bit_and": FunctionContract("a & b of one integer type or decimal(38, 0)"),
        "bit_or": FunctionContract("a | b of one integer type or decimal(38, 0)"),
        "bit_xor": FunctionContract("bits in one of a and b, of one integer type or decimal(38, 0)"),
        "bit_not": FunctionContract("~a of an integer or decimal(38, 0)"),
        "shift_left": _WITH_ERRORS(
            "a << b, types as of bit_and; ExecutionError below 0 and where a bit is lost"
        ),
        "shift_right": _WITH_ERRORS(
            "a >> b, types as of bit_and; 0 where b is below 0 or not below the type's width"
        ),
        "bit_count": _CPU_ONLY("bits that are set, of an integer, as int8"),
        "hex": _PYTHON_ONLY(
            "int64, uint64 or decimal(38, 0) as two's complement; the bytes of a string or binary"
        ),
        "bin": _PYTHON_ONLY("as hex, to the base of two; not of binaries"),
        "to_base": _PYTHON_ONLY("to_base(a int64, base int32, least digits int32)"),
        "unhex": _WITH_ERRORS("string to binary; ExecutionError for what is no digit", row_by_row=True),
        "unbin": _WITH_ERRORS("string to binary; ExecutionError for what is no digit", row_by_row=True),
    }
)

TEXTS: Final[Mapping[str, FunctionContract]] = MappingProxyType(
    {
        "ends_with": FunctionContract("ends_with(a, string)", cuda_constants_from=1),
        "ltrim": FunctionContract("without spaces at the beginning"),
        "rtrim": FunctionContract("without spaces at the end"),
        "trim_of": FunctionContract("trim_of(a, characters)", cuda_constants_from=1),
        "ltrim_of": FunctionContract("ltrim_of(a, characters)", cuda_constants_from=1),
        "rtrim_of": FunctionContract("rtrim_of(a, characters)", cuda_constants_from=1),
        "left": FunctionContract(
            "left(a, n int64): n characters, all but the last -n where n is below 0", cuda_constants_from=1
        ),
        "right": FunctionContract(
            "right(a, n int64): the last n characters, all but the first -n where n is below 0",
            cuda_constants_from=1,
        ),
        "substring_at": _CPU_ONLY("substring with places that are not literals; the length may be left out"),
        "text_between": _CPU_ONLY(
            "text_between(a, first int64, last int64): places from 1 on, below 0 from the end"
        ),
        "lpad": _PYTHON_ONLY(
            "lpad(a, n int32, characters): n characters; ExecutionError where there are none to add"
        ),
        "rpad": _PYTHON_ONLY("as lpad, at the end"),
        "replace": FunctionContract(
            "replace(a, what, by what); a where there is nothing to look for", cuda_constants_from=1
        ),
        "repeat": _CPU_ONLY("repeat(a, n int64); nothing where n is below 0"),
        "reverse": _CPU_ONLY("characters from behind, with the marks that go with them"),
        "position": FunctionContract(
            "position(a, part): place of the first, counted from 1, 0 where there is none; int64",
            cuda_constants_from=1,
        ),
        "split_part": _PYTHON_ONLY("split_part(a, separator, n int64): from the end where n is below 0"),
        "translate": _PYTHON_ONLY("translate(a, characters, others): one by one; what has no other goes"),
        "overlay": _PYTHON_ONLY(
            "overlay(a, b, start int64[, count int64]): b in place of that many characters"
        ),
        "concat_ws": _CPU_ONLY(
            "concat_ws(separator, a, ...): what is not null; null where the separator is", strict=False
        ),
        "ascii": _PYTHON_ONLY("the first character's number, int32; 0 of nothing"),
        "unicode": _PYTHON_ONLY("the first character's number, int32; -1 of nothing"),
        "chr": _PYTHON_ONLY("int32 to the character; ExecutionError where there is none"),
        "strlen": FunctionContract("bytes of a string or binary, int64"),
        "bit_length": FunctionContract("bits of a string, int64"),
        "like_escape": _CPU_ONLY(
            "like_escape(a, pattern, escape): what follows the escape character stands for itself"
        ),
        "ilike_escape": _CPU_ONLY("like_escape without regard to case"),
        "glob": _CPU_ONLY("glob(a, pattern) over bytes: * ? [a-z] [!a-z] and a backslash"),
        "regexp_matches": _OF_REGEX("regexp_matches(a, pattern[, options literal]): RE2, anywhere"),
        "regexp_full_match": _OF_REGEX(
            "regexp_full_match(a, pattern[, options literal]): RE2, the whole string"
        ),
        "regexp_replace": _OF_REGEX(
            "regexp_replace(a, pattern, by what[, options literal]): the first, all with g"
        ),
        "regexp_extract": _OF_REGEX("regexp_extract(a, pattern[, group int32 literal[, options literal]])"),
        "regexp_escape": _PYTHON_ONLY("the string as a pattern that matches it"),
        **dict.fromkeys(
            ("md5", "sha1", "sha256"), _PYTHON_ONLY("of a string or binary, as hexadecimal digits")
        ),
        "to_base64": _PYTHON_ONLY("binary to string"),
        "from_base64": _PYTHON_ONLY("string to binary; ExecutionError for what is not base64"),
        "encode": _PYTHON_ONLY("string to binary"),
        "decode": _PYTHON_ONLY("binary to string; ExecutionError for what is not UTF-8"),
        "url_encode": _PYTHON_ONLY("all but letters, digits and -_.~ as %XX"),
        "url_decode": _PYTHON_ONLY("ExecutionError for what is not UTF-8 then"),
        "strip_accents": _PYTHON_ONLY("characters without marks"),
        "nfc_normalize": _PYTHON_ONLY("Unicode's normal form C"),
        "format_bytes": _PYTHON_ONLY("int64 as a number of bytes, KiB, ..."),
        "format_decimal_bytes": _PYTHON_ONLY("int64 as a number of bytes, kB, ..."),
        "parse_filename": _PYTHON_ONLY("parse_filename(path[, without extension boolean[, separators]])"),
        "parse_dirname": _PYTHON_ONLY("parse_dirname(path[, separators]): its first part"),
        "parse_dirpath": _PYTHON_ONLY("parse_dirpath(path[, separators]): without its last part"),
        "bar": _PYTHON_ONLY(
            "bar(x, least, most[, width]): of doubles; ExecutionError for limits that are none"
        ),
        "levenshtein": _PYTHON_ONLY("bytes to insert, delete or replace; int64"),
        "damerau_levenshtein": _PYTHON_ONLY("as levenshtein, with transpositions; int64"),
        "hamming": _PYTHON_ONLY("bytes that differ, int64; ExecutionError where lengths do, or are 0"),
        "jaccard": _PYTHON_ONLY("bytes in both among bytes in either; double"),
        "jaro_similarity": _PYTHON_ONLY("double"),
        "jaro_winkler_similarity": _PYTHON_ONLY("double"),
    }
)

TIMES: Final[Mapping[str, FunctionContract]] = MappingProxyType(
    {
        "now": FunctionContract(
            "now(): when the plan runs, timestamp(us, UTC); a literal before a device sees it"
        ),
        "last_day": FunctionContract("date or timestamp to the last date of its month"),
        "dayname": FunctionContract("date or timestamp to the day's English name"),
        "monthname": FunctionContract("date or timestamp to the month's English name"),
        "julian": FunctionContract("date or timestamp to the Julian day, double"),
        "make_date": _WITH_ERRORS("three int64; ExecutionError where there is no such date"),
        "make_time": _WITH_ERRORS("two int64 and a double; ExecutionError where there is no such time"),
        "make_timestamp": _WITH_ERRORS(
            "five int64 and a double; ExecutionError where there is no such moment"
        ),
        "from_count": _WITH_ERRORS("int64 units since 1970 to a timestamp"),
        "from_seconds": _WITH_ERRORS("double seconds since 1970 to timestamp(us, UTC)"),
        "to_count": FunctionContract("a time's or timestamp's units, int64"),
        "date_diff": FunctionContract(
            "date_diff(a, b, unit literal): how often it begins from a to b, int64; they are"
            " of one type (date, time(us), timestamp(us)); weeks are whole ones"
        ),
        "date_sub": _CPU_ONLY(
            "date_sub(a, b, unit literal): whole units from a to b, both time(us) or timestamp(us)"
        ),
        "strftime": _CPU_ONLY("strftime(date or timestamp, pattern); ExecutionError for an unknown part"),
        "strptime": _PYTHON_ONLY(
            "strptime(a, pattern) to timestamp(us[, UTC]) or (ns); ExecutionError if unfit"
        ),
        "try_strptime": _PYTHON_ONLY("as strptime, null where it does not fit"),
        "to_interval": _OF_INTERVALS(
            "to_interval(n int64, unit literal); of seconds and milliseconds a double"
        ),
        "add_interval": FunctionContract(
            "time(us) or timestamp(us) and an interval, to the same", cuda_constants_from=1
        ),
        "subtract_interval": FunctionContract(
            "time(us) or timestamp(us) and an interval, to the same", cuda_constants_from=1
        ),
        "add_time": _CPU_ONLY("a date and a time(us) to timestamp(us)"),
        "timestamp_difference": _OF_INTERVALS("two timestamp(us) to an interval of days and less"),
        "age": _OF_INTERVALS("age(a, b): from b to a in months, days and less"),
        "interval_add": _OF_INTERVALS("two intervals, part by part"),
        "interval_subtract": _OF_INTERVALS("two intervals, part by part"),
        "interval_negate": _OF_INTERVALS("every part"),
        "interval_times": _OF_INTERVALS("an interval and an int64"),
        "interval_scale": _OF_INTERVALS(
            "an interval and a double; fractions of a part go to the next smaller one"
        ),
        "interval_divide": _OF_INTERVALS("an interval and a double; null where it is 0"),
        "interval_normalize": _OF_INTERVALS(
            "30 days as a month, 24 hours as a day; the rest is not negative"
        ),
        "interval_part": _OF_INTERVALS("interval_part(a, unit literal), int64"),
        "interval_seconds": _OF_INTERVALS("double; a year has 365.25 days, a month 30"),
        "interval_microseconds": _OF_INTERVALS("int64; a month has 30 days"),
        "interval_order": _OF_INTERVALS("HUGEINT, equal and ordered as the intervals are"),
        "interval_trunc": _OF_INTERVALS("interval_trunc(a, unit literal): without what is smaller"),
        "time_bucket": _OF_INTERVALS("time_bucket(width interval, a timestamp(us)[, origin of that type])"),
    }
)
