"""What counts as a space."""

from __future__ import annotations

from typing import Final

SPACES: Final = (
    "\u0020\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
"""Unicode's category Zs: what DuckDB's trim removes; tabs and newlines stay."""
