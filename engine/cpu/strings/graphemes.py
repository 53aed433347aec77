r"""Characters as readers see them: a base with its marks, joined emoji, flags (Unicode's annex 29).

As in DuckDB, which has Unicode 15.1. regex's own `\X` is not the same: it joins consonants behind any
character with a virama, in more scripts too; and its Unicode is later, where fewer symbols are pictographs.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, Final

from bamquery.statement_context.cancellation import check_cancelled

_EVERY: Final = 1 << 12
"""Characters after which it is asked again whether the query goes on."""
_PICTOGRAPH: Final = (
    r"[\p{ExtPict}\u2388\u2605\u2607-\u2612\u2616-\u2685\u2690-\u2704\u270E-\u2711\u2765-\u2767"
    r"\U0001F000-\U0001F0F5\U0001F10D-\U0001F10F\U0001F12F\U0001F16C-\U0001F16F\U0001F1AD\U0001F260-\U0001F265"
    r"\U0001F322-\U0001F3F6\U0001F4FE\U0001F546-\U0001F5F9\U0001F6C6-\U0001F6F2\U0001F774-\U0001F776"
    r"\U0001F77B-\U0001F77F\U0001F7D5-\U0001F7D9\U0001F8B0-\U0001F8B1\U0001FA00-\U0001FA53\U0001FA60-\U0001FA6D]"
)
"""Symbols that Unicode has, or had until 15.1, for parts of joined emoji."""
_CONJOINING: Final = r"[\p{Devanagari}\p{Bengali}\p{Gujarati}\p{Oriya}\p{Telugu}\p{Malayalam}]"
"""Scripts whose consonants a virama joins."""
_CONSONANT: Final = rf"[\p{{InSC=Consonant}}&&{_CONJOINING}]"
_VIRAMA: Final = rf"[\p{{InSC=Virama}}&&{_CONJOINING}]"
_BETWEEN: Final = r"[[\p{GCB=Extend}&&\P{ccc=0}&&\P{InSC=Virama}]\u200D]"
_CHARACTER: Final = rf"""(?xs)
\r\n
| \p{{GCB=Prepend}}*
  (?: \p{{GCB=RI}}{{2}}
    | \p{{GCB=L}}*+ (?: \p{{GCB=LV}}\p{{GCB=V}}*+ | \p{{GCB=V}}++ | \p{{GCB=LVT}} ) \p{{GCB=T}}*+
    | \p{{GCB=L}}++ | \p{{GCB=T}}++
    | {_PICTOGRAPH} (?: \p{{GCB=Extend}}*+ \u200D {_PICTOGRAPH} )*+
    | {_CONSONANT} (?: {_BETWEEN}*+ {_VIRAMA} [{_BETWEEN}{_VIRAMA}]*+ {_CONSONANT} )*+
    | [^\r\n\p{{GCB=Control}}]
  )
  [\p{{GCB=Extend}}\p{{GCB=SpacingMark}}\u200D]*+
| .
"""


def reversed_string(text: str) -> str:
    """The text from behind, characters whole; in ASCII each byte is one, as in DuckDB, a line's end too."""
    return text[::-1] if text.isascii() else "".join(reversed(graphemes(text)))


def graphemes(text: str) -> list[str]:
    """The text cut between characters."""
    found: list[str] = []
    for match in _pattern().finditer(text):
        if len(found) % _EVERY == 0:
            check_cancelled()
        found.append(match[0])
    return found


@functools.cache
def _pattern() -> Any:
    """Compiled, and regex imported, by the first query that asks: few do."""
    regex = importlib.import_module("regex")
    return regex.compile(_CHARACTER, regex.VERSION1)
