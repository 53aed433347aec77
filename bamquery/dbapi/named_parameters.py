"""PEP 249's `:name` written as BamQuery's `$name`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from bamquery.sql_frontend.parser.dialect import BamQueryDialect
from bamquery.text.identifiers import fold_case

_BEFORE: Final = frozenset(" \t\r\n(,=<>!+-*/%|&^~[")
"""What stands before a parameter; after anything else a colon is a slice, `x[1:n]`, or an alias, `a:b`."""


def with_dollars(text: str, parameters: Mapping[str, Any]) -> str:
    """The text, of the same length, with `$name` for each `:name` that `parameters` has a value for."""
    if ":" not in text:
        return text
    try:
        tokens = BamQueryDialect().tokenize(text)
    except TokenError:  # which parsing it will say with the place
        return text
    names = {fold_case(str(name)) for name in parameters}
    written = list(text)
    for colon, name in pairwise(tokens):
        if (
            colon.token_type == TokenType.COLON
            and colon.end + 1 == name.start
            and fold_case(name.text) in names
            and (colon.start == 0 or text[colon.start - 1] in _BEFORE)
        ):
            written[colon.start] = "$"
    return "".join(written)
