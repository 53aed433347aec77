"""Names as statements can have them."""

from __future__ import annotations

import functools
import re
from typing import Final

_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*")


def quoted_name(name: str) -> str:
    """The name, in quotes unless it is plain: small letters, digits and _, and no word of the language."""
    if _PLAIN.fullmatch(name) and name not in _words():
        return name
    return '"' + name.replace('"', '""') + '"'


@functools.cache
def _words() -> frozenset[str]:
    """All words that mean something to the parser, be it in some places only."""
    from bamquery.sql_frontend.parser.keywords import keywords  # noqa: PLC0415 - the tokenizer, for this only

    return frozenset(keywords())
