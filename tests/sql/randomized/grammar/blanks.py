"""Queries as a hasty user writes them: operators without blanks around them."""

from __future__ import annotations

import re

_QUOTED_OR_OPERATOR = re.compile(
    r"""'[^']*'|"[^"]*"|(?<=[\w)'"])[ ](<=|>=|<>|\|\||//|[-+*/%<>=])[ ](?=[\w('"])"""
)


def without_blanks(sql: str) -> str:
    """The same query, `a + 1` as `a+1`, but for what stands within quotes or before another operator."""
    return _QUOTED_OR_OPERATOR.sub(lambda found: found[1] or found[0], sql)
