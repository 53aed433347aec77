"""Pieces of a text replaced in one pass, so that what came in is not replaced again."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bamquery.errors import BamQueryError


def replace_pieces(text: str, pieces: Mapping[str, str]) -> str:
    """The text with each piece replaced wherever it occurs.

    Raises:
        BamQueryError: a piece does not occur.
    """
    missing = [piece for piece in pieces if piece not in text]
    if missing:
        raise BamQueryError(f"there is no {' and no '.join(missing)} to put another constant for")
    if not pieces:
        return text
    longest_first = sorted(pieces, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda found: pieces[found.group()], text)
