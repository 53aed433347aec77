"""Walks over syntax trees of any size, which an interrupt reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from bamquery.statement_context.cancellation import check_cancelled


def walk(node: exp.Expr, prune: Callable[[exp.Expr], bool] | None = None) -> Iterator[exp.Expr]:
    """The node and all below it, level by level; nothing below those that are to be pruned.

    Raises:
        CancelledError: the statement was cancelled.
    """
    for below in node.walk(prune=prune):
        check_cancelled()
        yield below


def walk_query(node: exp.Expr) -> Iterator[exp.Expr]:
    """As `walk`, without what is below queries within, which are given themselves."""
    return walk(node, prune=lambda below: isinstance(below, exp.Query) and below is not node)
