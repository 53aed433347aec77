"""Takes syntax trees apart: each node knows the one above it, so that reference counting alone frees none."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Iterable

from sqlglot import exp


def dismantle(trees: Iterable[exp.Expr]) -> None:
    """Take all nodes of trees apart, which nobody asks any more, whoever still holds one of them.

    It looks for no interrupt, since a statement that was interrupted leaves a tree as well: a million nodes
    take a second.
    """
    waiting = list(trees)
    while waiting:
        node = waiting.pop()
        node.parent = None
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [item for item in value if isinstance(item, exp.Expr)]
        node.args = {}


def dismantle_unfinished(error: BaseException) -> None:
    """The same for what a parser has made of a text when it raises an error: its calls hold it."""
    held = gc.get_referents(*(frame for frame, _ in traceback.walk_tb(error.__traceback__)))
    lists = (value if isinstance(value, list) else [value] for value in held)
    dismantle(item for items in lists for item in items if isinstance(item, exp.Expr))
