"""Calls of functions for random queries: shapes by what they give, holes for what they take."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]
Generator = Callable[[Draw, int], str]

NUMBERS = (
    *("strlen({t})", "position('a' IN {t})", "sign({n})", "greatest({n}, {n})", "least({n}, {n})"),
    *("date_diff('day', {m}, {m})", "date_sub('month', {m}, {m})", "isoyear({m})", "ascii({t})"),
    *("levenshtein({t}, {t})", "epoch_us({m})", "trunc({n})"),
)
TEXTS = (
    *("lpad({t}, 3, '*')", "replace({t}, 'a', 'bc')", "reverse({t})", "right({t}, 1)", "left({t}, -1)"),
    *(
        "split_part({t}, 'e', 1)",
        "regexp_replace({t}, '[aeiou]', '<\\0>')",
        "dayname({m})",
        "ltrim({t}, 'ab')",
    ),
    *("strftime({m}, '%Y-%m')", "concat_ws('-', {t}, {t})", "md5({t})", "regexp_extract({t}, '.(.)', 1)"),
)
MOMENTS = (
    *("{m} + INTERVAL 1 MONTH", "{m} - INTERVAL 36 HOUR", "last_day({m})"),
    *("time_bucket(INTERVAL 7 DAY, {m})", "date_trunc('quarter', {m})", "greatest({m}, {m})"),
)
TRUTHS = (
    *("{t} SIMILAR TO '[a-c].*'", "{t} GLOB '*a*'", "{t} LIKE {t}", "{t} ~ 'e'", "contains({t}, {t})"),
    *("({m})::TIMESTAMP - ({m})::TIMESTAMP > INTERVAL 1 DAY", "{t} LIKE 'a$%%' ESCAPE '$'"),
)


def call(draw: Draw, shapes: tuple[str, ...], of: Mapping[str, Generator], depth: int) -> str:
    """One of the shapes, its holes filled: `{n}` a number, `{t}` a text, `{m}` a moment."""
    shape = draw(st.sampled_from(shapes))
    return re.sub(r"\{([ntm])\}", lambda hole: of[hole[1]](draw, depth), shape)
