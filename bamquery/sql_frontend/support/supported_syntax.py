"""What of the syntax tree the binder reads; everything else is refused, all at once, before any I/O.

`reads` lists, for each kind of node, the arguments that the binder takes into account. A node of
another kind, or another argument that is set, is something that the statement asks for and that would
otherwise be ignored in silence. `places` says where a node is read, `refusal_messages` what the rest is
called.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from bamquery.errors import Reason, UnsupportedError
from bamquery.sql_frontend.support.places import PLACES
from bamquery.sql_frontend.support.reads import READ, WITHOUT_MEANING
from bamquery.sql_frontend.support.refusal_messages import (
    ARGUMENT_WORDS,
    argument_words,
    has_own_name,
    words_of,
)
from bamquery.sql_frontend.syntax.positions import reason, start
from bamquery.statement_context.cancellation import check_cancelled


def check(statement: exp.Expr, sql: str) -> None:
    """Refuse what the binder would not read.

    Raises:
        UnsupportedError: with every construct, in the order of the text.
    """
    reasons = sorted(set(_reasons(statement, sql)), key=lambda r: (r.line, r.column))
    if reasons:
        raise UnsupportedError(reasons, sql)


def _reasons(statement: exp.Expr, sql: str) -> Iterator[Reason]:
    pending = [(statement, False)]  # a list, not recursion: chains of operators get long
    while pending:
        check_cancelled()
        node, inside_refused = pending.pop()
        kind = type(node)
        words = _refusal(node)
        if words is not None and (not inside_refused or has_own_name(kind)):
            yield _not_supported(words, sql, node)
        inside_refused = inside_refused or words is not None
        for name, value in node.args.items():
            if value is None or value is False or (kind, name) in WITHOUT_MEANING:
                continue
            values = value if isinstance(value, list) else [value]
            below = [child for child in values if isinstance(child, exp.Expr)]
            if values and _is_ignored(kind, name, below, inside_refused=inside_refused):
                yield _not_supported(argument_words(kind, name), sql, below[0] if below else node)
                pending += [(node, True) for child in below for node in child.iter_expressions()]
            else:
                # Constants have nothing below and may stand anywhere: of long lists most items are that.
                pending += [(child, inside_refused) for child in below if type(child) is not exp.Literal]


def _is_ignored(kind: type[exp.Expr], name: str, below: list[exp.Expr], *, inside_refused: bool) -> bool:
    """Whether an argument is one that the binder does not read, and that does not say so itself."""
    if kind not in READ or name in READ[kind]:
        return False
    if (kind, name) in ARGUMENT_WORDS:
        return True
    return not inside_refused and not (below and all(has_own_name(type(child)) for child in below))


def _not_supported(words: str, sql: str, node: exp.Expr) -> Reason:
    place: exp.Expr | None = node
    while place is not None and start(place) is None:
        place = place.parent
    return reason(f"{words} is not supported", sql, place)


def _refusal(node: exp.Expr) -> str | None:
    """What the node is called if it cannot be there, or None."""
    kind = type(node)
    if kind not in READ:
        return words_of(node)
    place = PLACES.get(kind)
    return place(node) if place else None
