"""Scalar functions of strings and blobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bamquery.function_catalog.contract import CONSTANTS, CPU_ONLY, PYTHON, FunctionContract
from bamquery.function_catalog.entry import Entry, Section

_SAME: Final = "(text VARCHAR) -> VARCHAR"
_COUNT: Final = "(text VARCHAR) -> BIGINT"
_TEST: Final = "(text VARCHAR, part VARCHAR) -> BOOLEAN"
_TRIM: Final = "(text VARCHAR [, characters VARCHAR]) -> VARCHAR"
_PAD: Final = "(text VARCHAR, n INTEGER, characters VARCHAR) -> VARCHAR"
_ESCAPE: Final = "(text VARCHAR, pattern VARCHAR, escape VARCHAR) -> BOOLEAN"
_MATCH: Final = "(text VARCHAR, pattern VARCHAR [, options VARCHAR]) -> BOOLEAN"
_DIGEST: Final = "(text VARCHAR) -> VARCHAR | (blob BLOB) -> VARCHAR"
_EDITS: Final = "(a VARCHAR, b VARCHAR) -> BIGINT"
_LIKENESS: Final = "(a VARCHAR, b VARCHAR) -> DOUBLE"
_OF_PATTERN: Final = replace(CPU_ONLY, row_by_row="columns")
_OF_REGEX: Final = FunctionContract(
    cuda_refusal="libcudf's regular expressions are not those of RE2", row_by_row="columns"
)

SECTION: Final = Section(
    "Strings",
    "scalar",
    (
        Entry("length len char_length character_length", _COUNT, "How many code points a text has."),
        Entry("strlen", _COUNT, "How many bytes a text has in UTF-8."),
        Entry("bit_length", _COUNT, "How many bits a text has in UTF-8."),
        Entry("octet_length", "(blob BLOB) -> BIGINT", "How many bytes a blob has.", calls="strlen"),
        Entry("lower lcase", _SAME, "The text in small letters.", example="lower('NYC')"),
        Entry("upper ucase", _SAME, "The text in capital letters.", example="upper('nyc')"),
        Entry(
            "concat",
            "(value ANY, ...) -> VARCHAR",
            "The values as strings, one behind the other; NULL is no string.",
            calls="concat coalesce",
            example="concat('a', 1, NULL)",
        ),
        Entry(
            "concat_ws",
            "(separator VARCHAR, value ANY, ...) -> VARCHAR",
            "The values as strings with a separator between them, without the NULLs.",
            replace(CPU_ONLY, text="null where the separator is", strict=False),
            example="concat_ws(', ', 'a', NULL, 'b')",
        ),
        Entry(
            "substring substr",
            "(text VARCHAR, start BIGINT [, length BIGINT]) -> VARCHAR",
            "A part of the text: places count from 1, negative ones from the end.",
            FunctionContract("start and length are literals, a null length is all the rest"),
            calls="substring substring_at",
            example="substring('Manhattan', 2, 3)",
        ),
        Entry(
            "left",
            "(text VARCHAR, n BIGINT) -> VARCHAR",
            "The first n characters, or all but the last -n.",
            CONSTANTS,
            calls="left substring",
        ),
        Entry(
            "right",
            "(text VARCHAR, n BIGINT) -> VARCHAR",
            "The last n characters, or all but the first -n.",
            CONSTANTS,
        ),
        Entry(
            "trim",
            _TRIM,
            "The text without spaces, or those characters, at both ends.",
            FunctionContract(),
            calls="trim trim_of",
        ),
        Entry(
            "ltrim",
            _TRIM,
            "The text without spaces, or those characters, at its beginning.",
            FunctionContract(),
            calls="ltrim ltrim_of",
        ),
        Entry(
            "rtrim",
            _TRIM,
            "The text without spaces, or those characters, at its end.",
            FunctionContract(),
            calls="rtrim rtrim_of",
        ),
        Entry(
            "lpad",
            _PAD,
            "The text cut, or filled from the left with characters (none is an error), to n.",
            PYTHON,
        ),
        Entry(
            "rpad",
            _PAD,
            "The text cut, or filled from the right with characters (none is an error), to n.",
            PYTHON,
        ),
        Entry(
            "replace",
            "(text VARCHAR, what VARCHAR, by VARCHAR) -> VARCHAR",
            "The text with another one in place of each occurrence.",
            CONSTANTS,
            example="replace('hello', 'l', '-')",
        ),
        Entry(
            "translate",
            "(text VARCHAR, characters VARCHAR, others VARCHAR) -> VARCHAR",
            "The text with each of the characters replaced by the one at its place in the others, if any.",
            PYTHON,
            example="translate('12345', '143', 'ax')",
        ),
        Entry(
            "overlay",
            "(text VARCHAR, other VARCHAR, start BIGINT [, length BIGINT]) -> VARCHAR",
            "The text with another one in place of a part.",
            PYTHON,
        ),
        Entry(
            "repeat",
            "(text VARCHAR, n BIGINT) -> VARCHAR",
            "The text n times; more than a thread's part of `memory_limit` is an error.",
            CPU_ONLY,
        ),
        Entry("reverse", _SAME, "The text from behind, characters with their marks.", CPU_ONLY),
        Entry(
            "split_part",
            "(text VARCHAR, separator VARCHAR, n BIGINT) -> VARCHAR",
            "What stands between separators: part n from 1, from the end if negative.",
            PYTHON,
            example="split_part('a-b-c', '-', 2)",
        ),
        Entry(
            "strpos instr",
            "(text VARCHAR, part VARCHAR) -> BIGINT",
            "The place of the first occurrence, from 1; 0 if there is none.",
            calls="position",
        ),
        Entry(
            "position",
            "(part VARCHAR, text VARCHAR) -> BIGINT",
            "The place of the first occurrence, from 1; 0 if there is none.",
            CONSTANTS.with_text("position(text, part)"),
            call="position(part IN text)",
        ),
        Entry("contains", _TEST, "Whether a text occurs in another.", CONSTANTS),
        Entry("starts_with prefix", _TEST, "Whether a text begins with another.", CONSTANTS),
        Entry("ends_with suffix", _TEST, "Whether a text ends with another.", CONSTANTS),
        Entry("like_escape", _ESCAPE, "`text LIKE pattern ESCAPE escape`.", _OF_PATTERN),
        Entry("not_like_escape", _ESCAPE, "`text NOT LIKE pattern ESCAPE escape`.", calls="like_escape"),
        Entry("ilike_escape", _ESCAPE, "As like_escape, without regard to case.", _OF_PATTERN),
        Entry(
            "not_ilike_escape", _ESCAPE, "As not_like_escape, without regard to case.", calls="ilike_escape"
        ),
        Entry(
            "regexp_matches", _MATCH, "Whether a regular expression (RE2) is found in the text.", _OF_REGEX
        ),
        Entry("regexp_full_match", _MATCH, "Whether a regular expression fits the whole text.", _OF_REGEX),
        Entry(
            "regexp_replace",
            "(text VARCHAR, pattern VARCHAR, by VARCHAR [, options VARCHAR]) -> VARCHAR",
            "The text with what fits replaced: the first, or all with the option `g`.",
            _OF_REGEX,
            example="regexp_replace('hello', '[lo]', '-')",
        ),
        Entry(
            "regexp_extract",
            "(text VARCHAR, pattern VARCHAR [, group INTEGER [, options VARCHAR]]) -> VARCHAR",
            "What fits the regular expression, or a group (a constant) of it.",
            _OF_REGEX,
            example="regexp_extract('abc', '([a-z])(b)', 1)",
        ),
        Entry("regexp_escape", _SAME, "A regular expression that fits just the text.", PYTHON),
        Entry(
            "ascii",
            "(text VARCHAR) -> INTEGER",
            "The code point of the first character; 0 of an empty text.",
            PYTHON,
        ),
        Entry(
            "ord unicode",
            "(text VARCHAR) -> INTEGER",
            "The code point of the first character, -1 of an empty text for `unicode`.",
            PYTHON,
            calls="unicode",
        ),
        Entry(
            "chr",
            "(n INTEGER) -> VARCHAR",
            "The character of a code point; an error where there is none.",
            PYTHON,
            example="chr(65)",
        ),
        Entry("md5", _DIGEST, "The MD5 hash, in hexadecimal digits.", PYTHON),
        Entry("sha1", _DIGEST, "The SHA-1 hash, in hexadecimal digits.", PYTHON),
        Entry("sha256", _DIGEST, "The SHA-256 hash, in hexadecimal digits.", PYTHON),
        Entry(
            "base64 to_base64", "(blob BLOB) -> VARCHAR", "The bytes in Base64.", PYTHON, calls="to_base64"
        ),
        Entry(
            "from_base64",
            "(text VARCHAR) -> BLOB",
            "The bytes that a text in Base64 stands for; others are an error.",
            PYTHON,
        ),
        Entry("encode", "(text VARCHAR) -> BLOB", "The text's bytes in UTF-8.", PYTHON),
        Entry(
            "decode",
            "(blob BLOB) -> VARCHAR",
            "The text that bytes are in UTF-8; others are an error.",
            PYTHON,
        ),
        Entry(
            "url_encode", _SAME, "The text with % and digits for all but letters, digits and `-_.~`.", PYTHON
        ),
        Entry(
            "url_decode",
            _SAME,
            "The text that url_encode would have encoded; an error where that is not UTF-8.",
            PYTHON,
        ),
        Entry(
            "strip_accents", _SAME, "The text without accents.", PYTHON, example="strip_accents('mühleisen')"
        ),
        Entry("nfc_normalize", _SAME, "The text in Unicode's normal form C.", PYTHON),
        Entry(
            "format_bytes formatreadablesize",
            "(n BIGINT) -> VARCHAR",
            "A number of bytes in units of 1024.",
            PYTHON,
            example="format_bytes(16_000)",
        ),
        Entry(
            "formatreadabledecimalsize",
            "(n BIGINT) -> VARCHAR",
            "A number of bytes in units of 1000.",
            PYTHON,
            calls="format_decimal_bytes",
            example="formatreadabledecimalsize(16_000)",
        ),
        Entry(
            "parse_filename",
            "(path VARCHAR [, trim BOOLEAN] [, separator VARCHAR]) -> VARCHAR",
            "The last part of a path, without its extension if `trim` is true. `separator` says what stands "
            "between parts: `'system'` or `'forward_slash'` /, `'backslash'`, or else any of both.",
            PYTHON,
            example="parse_filename('path/to/file.csv', true)",
        ),
        Entry(
            "parse_dirname",
            "(path VARCHAR [, separator VARCHAR]) -> VARCHAR",
            "The first folder of a path; `separator` as of parse_filename().",
            PYTHON,
        ),
        Entry(
            "parse_dirpath",
            "(path VARCHAR [, separator VARCHAR]) -> VARCHAR",
            "A path without its last part; `separator` as of parse_filename().",
            PYTHON,
        ),
        Entry(
            "bar",
            "(x DOUBLE, least DOUBLE, most DOUBLE [, width DOUBLE]) -> VARCHAR",
            "A bar as long as x is on the way from the least to the most, 80 characters at full width.",
            PYTHON,
            example="bar(5, 0, 20, 10)",
        ),
        Entry("levenshtein editdist3", _EDITS, "How many bytes to put in, take out or change.", PYTHON),
        Entry("damerau_levenshtein", _EDITS, "As levenshtein; two that change places count once.", PYTHON),
        Entry(
            "hamming mismatches",
            _EDITS,
            "How many bytes differ between strings of one length; others are an error.",
            PYTHON,
        ),
        Entry("jaccard", _LIKENESS, "The share of characters in common, from 0 to 1.", PYTHON),
        Entry("jaro_similarity", _LIKENESS, "Likeness by Jaro, from 0 to 1.", PYTHON),
        Entry("jaro_winkler_similarity", _LIKENESS, "Likeness by Jaro and Winkler, from 0 to 1.", PYTHON),
    ),
    notes="Options of regular expressions: `c` and `i` with and without regard to case, `l` the pattern is\n"
    "a plain text, `s` a dot is a new line too, `m` `n` `p` it is not, `g` all (regexp_replace only).\n"
    "`LIKE`, `ILIKE`, `GLOB` and `text[i:j]` call Python as `like_escape` does; of strings beyond ASCII\n"
    "`reverse` and `position` do, too.",
)
