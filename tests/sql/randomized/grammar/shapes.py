"""Calls of functions by what they give, with holes for what they take.

Holes: `{i}` an integer, `{k}` a stored one, `{n}` any exact number, `{d}` a DOUBLE, `{m2}` a stored
decimal, `{p2}` a stored DOUBLE, `{x}` a stored integer that may overflow, `{t}` a text, `{D}` a date,
`{T}` a timestamp, `{m}` either, `{c}` a time, `{v}` an interval, `{b}` a truth value, `{e}` any of
these.
"""

from __future__ import annotations

INTEGERS = (
    *("abs({i})", "sign({n})", "length({t})", "len({t})", "strlen({t})", "bit_length({t})", "ascii({t})"),
    *("unicode({t})", "ord({t})", "position({t} IN {t})", "strpos({t}, 'a')", "instr({t}, {t})"),
    *("octet_length(encode({t}))", "levenshtein({t}, {t})", "damerau_levenshtein({t}, {t})"),
    *("editdist3({t}, 'abc')", "gcd({k}, {k})", "lcm({k}, {k})", "bit_count({i})", "xor({k}, {k})"),
    *("({k} & {k})", "({k} | {k})", "(~{k})", "greatest({i}, {i})", "least({i}, {i}, {i})"),
    *("(abs({k}) << 2)", "(abs({k}) >> 1)", "add({i}, {k})", "subtract({i}, {k})", "multiply({k}, {k})"),
    *("divide({i}, {k})", "mod({i}, {k})", "({i} // {k})", "({i} % {k})", "factorial(abs({k}) % 10)"),
    *("year({m})", "quarter({m})", "month({m})", "day({m})", "dayofmonth({m})", "dayofyear({m})"),
    *("hour({T})", "minute({T})", "second({T})", "millisecond({T})", "microsecond({T})", "hour({c})"),
    *("minute({c})", "dayofweek({m})", "weekday({m})", "isodow({m})", "week({m})", "isoyear({m})"),
    *("yearweek({m})", "decade({m})", "century({m})", "millennium({m})", "era({m})", "epoch_ms({m})"),
    *("epoch_us({T})", "epoch_ns({T})", "date_diff('day', {m}, {m})", "datediff('month', {D}, {D})"),
    *("date_diff('hour', {T}, {T})", "date_sub('month', {m}, {m})", "datesub('day', {T}, {T})"),
    *("date_diff('week', {D}, {T})", "date_diff('quarter', {m}, {m})", "date_sub('year', {m}, {m})"),
    *("extract(year FROM {m})", "extract(dow FROM {m})", "extract(doy FROM {D})", "date_part('isodow', {m})"),
    *("extract(minute FROM {c})", "extract(day FROM {v})", "extract(hour FROM {v})", "({D} - {D})"),
    *("date_part('microseconds', {T})", "datepart('decade', {m})", "CAST({b} AS INTEGER)"),
    *("TRY_CAST({t} AS INTEGER)", "TRY_CAST({n} AS TINYINT)", "TRY_CAST({d} AS BIGINT)"),
    *("CAST({n} AS BIGINT)", "TRY_CAST({t} AS UTINYINT)", "if({b}, {i}, {i})", "ifnull({i}, {i})"),
    *("TRY_CAST({n} AS HUGEINT)", "TRY_CAST({i} AS USMALLINT)", "hamming(left({t}, 1), 'a')"),
    *("constant_or_null(1, {e})", "nanosecond({T})", "millisecond({c})", "epoch_us({v})"),
)
DECIMALS = (
    *("abs({m2})", "round({m2}, 1)", "ceil({m2})", "floor({m2})", "trunc({m2})", "({m2} + {m2})"),
    *("({m2} - {k})", "({m2} * {k})", "({m2} % {k})", "-({m2})", "TRY_CAST({t} AS DECIMAL(5, 2))"),
    *("TRY_CAST({n} AS DECIMAL(4, 1))", "TRY_CAST({d} AS DECIMAL(9, 3))", "CAST({k} AS DECIMAL(10, 2))"),
    *("greatest({m2}, {m2})", "least({m2}, {k})", "if({b}, {m2}, {m2})", "mod({m2}, {m2})", "({m2} * {m2})"),
    *("round({m2})", "round({m2}, -1)", "round({m2}, 0)", "even({m2})", "trunc({m2}, 1)"),
)
FLOATS = (
    *("abs({d})", "ceil({d})", "floor({d})", "round({d})", "round({d}, 1)", "trunc({d})", "even({d})"),
    *("({d} + {d})", "({d} - {n})", "({d} * {k})", "({n} / {k})", "({i} / {i})", "({d} / 4)", "-({d})"),
    *("({d} // {k})", "({d} % {k})", "fmod({d}, {k})", "fdiv({d}, {k})", "sqrt(abs({d}))", "pi()"),
    *("greatest({d}, {d})", "least({d}, {n})", "if({b}, {d}, {d})", "nextafter({d}, {k})", "julian({m})"),
    *("epoch({m})", "epoch({v})", "CAST({n} AS DOUBLE)", "TRY_CAST({t} AS DOUBLE)", "CAST({k} AS FLOAT)"),
    *("jaccard({t} || 'a', {t} || 'b')", "round_even({d}, 1)", "extract(epoch FROM {m})", "nullif({d}, {k})"),
    *("(1e1 + 2)", "({d} - 15e-1 + 1)", "(2e0 - 1) * {k}", "({k} + 5e0 - 1)"),
    *("sqrt(abs({i}))", "CAST({d} AS FLOAT)", "ifnull({d}, 0.5)", "round({d}, 2)", "round({d}, -1)"),
)
NEAR_FLOATS = (
    *("exp({k} / 10)", "ln(abs({k}) + 1)", "log10(abs({k}) + 1)", "log2(abs({d}) + 1)", "log(abs({k}) + 2)"),
    *("log(2, abs({k}) + 1)", "sin({k})", "cos({d})", "tan({k})", "cot({k} + 0.5)", "asin({k} / 100)"),
    *("acos({k} / 100)", "atan({d})", "atan2({k}, {k})", "sinh({k} / 100)", "cosh({k} / 100)", "tanh({k})"),
    *("asinh({k})", "acosh(abs({k}) + 1)", "atanh({k} / 101)", "degrees({d})", "radians({d})", "cbrt({k})"),
    *("gamma(abs({k}) % 7 + 1)", "lgamma(abs({k}) + 1)", "power({k} / 10, 2)", "pow(2, {k} / 10)"),
    *(
        "jaro_similarity({t}, {t})",
        "jaro_winkler_similarity({t}, {t})",
        "exp(-abs({k}))",
        "(2 ** ({k} / 50))",
    ),
)
TEXTS = (
    *("{t}[{k}]", "{t}[2]", "{t}[-1]", "{t}[{k}:{k}]", "{t}[2:]", "{t}[:-2]", "{t}[-3:-2]", "{t}[{k}:]"),
    "E'\\t' || {t}",
    *("lower({t})", "upper({t})", "lcase({t})", "ucase({t})", "trim({t})", "ltrim({t}, 'ab')", "rtrim({t})"),
    *("substring({t}, 2)", "substr({t}, 1, 2)", "substring({t}, -2, 1)", "left({t}, 1)", "left({t}, -1)"),
    *("right({t}, 2)", "right({t}, -1)", "left({t}, {k})", "right({t}, {k})", "lpad({t}, 3, '*')"),
    *(
        "rpad({t}, 4, 'xy')",
        "replace({t}, 'a', 'bc')",
        "replace({t}, {t}, '-')",
        "translate({t}, 'ab', 'cd')",
    ),
    *("overlay({t} PLACING 'zz' FROM 2 FOR 1)", "repeat({t}, 2)", "reverse({t})", "split_part({t}, 'e', 1)"),
    *("split_part({t}, ' ', -1)", "concat({t}, {k}, {b})", "concat_ws('-', {t}, {t}, {k})", "md5({t})"),
    *("sha256({t})", "sha1({t})", "base64(encode({t}))", "hex({t})", "hex({k})", "to_base(abs({k}), 16)"),
    *("bin({k})", "url_encode({t})", "strip_accents({t})", "regexp_replace({t}, '[aeiou]', '<\\0>')"),
    *(
        "regexp_replace({t}, '(.)b', '\\1-', 'g')",
        "regexp_extract({t}, '.(.)', 1)",
        "regexp_extract({t}, '[a-z]+')",
    ),
    *("regexp_escape({t})", "chr(abs({k}) % 90 + 33)", "format_bytes(abs({i}))", "dayname({m})"),
    *(
        "monthname({m})",
        "strftime({m}, '%Y-%m')",
        "strftime({T}, '%H:%M:%S.%f')",
        "strftime({D}, '%a %d %b %j')",
    ),
    *("CAST({i} AS VARCHAR)", "CAST({p2} AS VARCHAR)", "CAST({m2} AS VARCHAR)", "CAST({D} AS VARCHAR)"),
    *("CAST({T} AS VARCHAR)", "CAST({b} AS VARCHAR)", "CAST({c} AS VARCHAR)", "{t} || {t}", "{t} || 'é'"),
    *(
        "if({b}, {t}, {t})",
        "ifnull({t}, 'none')",
        "nullif({t}, 'a')",
        "greatest({t}, {t})",
        "least({t}, 'm')",
    ),
    *(
        "typeof({e})",
        "bar(abs({k}), 0, 200, 8)",
        "nfc_normalize({t})",
        "decode(encode({t}))",
        "trim({t}, 'a ')",
    ),
    *("parse_filename({t} || '/x.csv')", "from_base64(base64(encode({t})))::VARCHAR", "CAST({v} AS VARCHAR)"),
)
DATES = (
    *(
        "({D} + {k})",
        "({D} - {k})",
        "CAST({T} AS DATE)",
        "last_day({m})",
        "make_date(2024, abs({k}) % 12 + 1, 5)",
    ),
    *("TRY_CAST({t} AS DATE)", "greatest({D}, {D})", "least({D}, DATE '2024-01-15')", "if({b}, {D}, {D})"),
    "nullif({D}, {D})",
    "coalesce({D}, DATE '2000-02-29')",
)
TIMESTAMPS = (
    *("date_trunc('hour', {T})", "date_trunc('quarter', {T})", "datetrunc('minute', {T})", "({D} + {v})"),
    *(
        "({T} + {v})",
        "({T} - {v})",
        "({T} - INTERVAL 36 HOUR)",
        "({m} + INTERVAL 1 MONTH)",
        "CAST({D} AS TIMESTAMP)",
    ),
    *("time_bucket(INTERVAL 7 DAY, {T})", "time_bucket(INTERVAL 2 MONTH, {T})", "greatest({T}, {T})"),
    *(
        "make_timestamp(2024, 2, abs({k}) % 28 + 1, 3, 4, 5.5)",
        "strptime('2024-02-0' || (abs({k}) % 9 + 1), '%Y-%m-%d')",
    ),
    *("try_strptime({t}, '%Y-%m-%d')", "TRY_CAST({t} AS TIMESTAMP)", "({D} + {c})", "if({b}, {T}, {T})"),
    *(
        "date_trunc('month', {D})",
        "date_trunc('week', {D})",
        "date_add({T}, {v})",
        "make_timestamp({i})",
        "least({T}, TIMESTAMP '2024-01-01 12:00:00')",
    ),
)
TIMES = (
    *("CAST({T} AS TIME)", "make_time(abs({k}) % 24, 5, 6.5)", "({c} + INTERVAL 90 MINUTE)", "({c} - {v})"),
    *("greatest({c}, {c})", "coalesce({c}, TIME '08:30:00')", "if({b}, {c}, TIME '23:59:59.999')"),
)
INTERVALS = (
    *("INTERVAL 1 DAY", "INTERVAL '2 months'", "INTERVAL '1 day 02:30'", "to_days({k})", "to_hours({k})"),
    *(
        "to_months({k})",
        "to_seconds({k})",
        "to_minutes({k})",
        "({T} - {T})",
        "age({m}, {m})",
        "(-INTERVAL 90 MINUTE)",
    ),
    *("(to_days({k}) + INTERVAL 5 HOUR)", "(INTERVAL 3 HOUR * {k})", "to_weeks({k})", "to_years({k} % 5)"),
    *("INTERVAL ({k}) HOURS", "normalized_interval(to_hours({k}))", "date_trunc('day', to_hours({k}))"),
)
TRUTHS = (
    *("{t} SIMILAR TO '[a-c].*'", "{t} GLOB '*a*'", "{t} LIKE {t}", "{t} ~ 'e'", "contains({t}, {t})"),
    *(
        "{t} NOT SIMILAR TO 'a|b'",
        "{t} !~ '^a'",
        "{t} LIKE 'a$%%' ESCAPE '$'",
        "{t} ILIKE 'A%'",
        "{t} NOT LIKE '_'",
    ),
    *("{t} LIKE '%é%'", "{t} ILIKE '%Z%'", "{t} NOT ILIKE 'b%'", "{t} ^@ 'a'", "starts_with({t}, {t})"),
    *("prefix({t}, 'b')", "ends_with({t}, 'b')", "suffix({t}, {t})", "regexp_matches({t}, '[0-9]')"),
    *(
        "regexp_full_match({t}, '[a-z]+', 'i')",
        "isnan({d})",
        "isinf({d})",
        "isfinite({d})",
        "{v} > INTERVAL 1 DAY",
    ),
    *(
        "({T} - {T}) <= {v}",
        "TRY_CAST({t} AS BOOLEAN)",
        "CAST({k} AS BOOLEAN)",
        "if({b}, {b}, {b})",
        "{b} IS TRUE",
    ),
    *("{b} IS NOT TRUE", "{b} IS FALSE", "{b} IS NOT FALSE", "{t} NOT GLOB 'a?'", "isfinite({D})"),
    *("greatest({b}, {b})", "{T} BETWEEN {D} AND {D}", "{c} BETWEEN TIME '01:00:00' AND {c}"),
)
RISKY_INTEGERS = (
    *(
        "({x} + {x})",
        "({x} * {x})",
        "({x} - {x})",
        "(- {x})",
        "abs({x})",
        "CAST({t} AS INTEGER)",
        "CAST({x} AS UTINYINT)",
    ),
    *("CAST({d} AS INTEGER)", "CAST({n} AS TINYINT)", "CAST({t} AS BIGINT)", "factorial({k})", "(1 << {k})"),
    "CAST({x} * 1000000 AS INTEGER) * 1000000",
)
RISKY_FLOATS = (
    "sqrt({k})",
    "ln({k})",
    "log10({k})",
    "({d} / {d})",
    "CAST({t} AS DOUBLE)",
    "acos({k})",
    "gamma({k})",
)
RISKY_MOMENTS = (
    *("make_date(2024, {k}, {k})", "CAST({t} AS DATE)", "strptime({t}, '%Y-%m-%d')", "make_time({k}, 1, 1)"),
    *("CAST({t} AS TIMESTAMP)", "make_timestamp(2024, 1, {k}, 1, 1, 1)"),
)
