"""Where in the text a node of the syntax tree stands."""

from __future__ import annotations

from sqlglot import exp

from bamquery.errors import Reason
from bamquery.text.statement_text import Place


def start(node: exp.Expr) -> int | None:
    """Offset of the node's first character: its own token's or that of the first token below it."""
    own = node.meta.get("start")
    if own is not None:
        return int(own)
    below = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(below, default=None)


def line_and_column(sql: str, offset: int) -> tuple[int, int]:
    """1-based line, as `str.splitlines` counts, and column of a character."""
    lines = (sql[:offset] + "x").splitlines()
    return len(lines), len(lines[-1])


def number_text(node: exp.Literal, sql: str, text: str) -> str:
    """A number as it is written: sqlglot keeps 1_000 as 1000, and .5 as 0.5 at the place of its point.

    `text` is what the node says.
    """
    if "start" not in node.meta:
        return text
    written = sql[node.meta["start"] : node.meta["end"] + 1]
    return text.removeprefix("0") if written == "." else written


def place_of(node: exp.Expr, sql: str) -> Place | None:
    """Where the node stands, or None where that is not known."""
    offset = start(node)
    return None if offset is None else Place(sql, *line_and_column(sql, offset))


def reason(message: str, sql: str, node: exp.Expr | None) -> Reason:
    """A reason that points at the node, or at nothing where no place is known."""
    offset = None if node is None else start(node)
    if offset is None:
        return Reason(message)
    return Reason(message, *line_and_column(sql, offset))
