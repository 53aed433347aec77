"""The words of the language."""

from __future__ import annotations

from collections.abc import Mapping

from bamquery.sql_frontend.parser.dialect import BamQueryDialect
from bamquery.sql_frontend.parser.reserved_words import FOREIGN_STATEMENTS, RESERVED, STATEMENT_KEYWORDS


def keywords() -> Mapping[str, str]:
    """Each word in small letters, and whether it is ``reserved``: no name unless it is quoted.

    The others are ``unreserved``: they mean something in some places.
    """
    known = {word for word in BamQueryDialect.Tokenizer.KEYWORDS if word.isidentifier()}
    words = {*known, *STATEMENT_KEYWORDS, *FOREIGN_STATEMENTS, *RESERVED}
    return {word.lower(): "reserved" if word.upper() in RESERVED else "unreserved" for word in sorted(words)}
