"""OVER as it is written: named windows looked up, and what they inherit from each other put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from bamquery.text.identifiers import fold_case, suggestion


@dataclass(frozen=True)
class WindowSyntax:
    """PARTITION BY, ORDER BY and the frame of a window."""

    partition: Sequence[exp.Expr] = ()
    order: Sequence[exp.Ordered] = ()
    frame: exp.WindowSpec | None = None


def read_definitions(select: exp.Select) -> Mapping[str, WindowSyntax]:
    """The windows that WINDOW names, by folded name.

    Raises:
        ValueError: two have one name, or one inherits from what is not there.
    """
    known: dict[str, WindowSyntax] = {}
    for definition in select.args.get("windows") or ():
        name = fold_case(definition.this.name)
        if name in known:
            raise ValueError(f'the window "{definition.this.name}" is already defined')
        known[name] = read_window(definition, known)
    return known


def read_window(node: exp.Window, known: Mapping[str, WindowSyntax]) -> WindowSyntax:
    """The window of OVER, or of a definition.

    Raises:
        ValueError: the window it builds on is not known, or already has what it adds.
    """
    base = node.args.get("alias")
    order = node.args.get("order")
    own = WindowSyntax(
        node.args.get("partition_by") or (),
        order.expressions if order is not None else (),
        node.args.get("spec"),
    )
    if base is None:
        return own
    given = known.get(fold_case(base.name))
    if given is None:
        raise ValueError(f'there is no window "{base.name}".{suggestion(base.name, known)}')
    for words, mine, theirs in (
        ("PARTITION BY", own.partition, given.partition),
        ("ORDER BY", own.order, given.order),
        ("the frame", own.frame, given.frame),
    ):
        if mine and theirs:
            raise ValueError(f'the window "{base.name}" already has {words}')
    return WindowSyntax(own.partition or given.partition, own.order or given.order, own.frame or given.frame)


def windows_around(node: exp.Window) -> Mapping[str, WindowSyntax]:
    """The named windows of the SELECT that OVER stands in."""
    select = node.find_ancestor(exp.Select)
    return read_definitions(select) if select is not None else {}
