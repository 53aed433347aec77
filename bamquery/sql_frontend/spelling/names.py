"""What the parts of spelling share: names, lists, and what spells a part of an expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from sqlglot import exp

_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")

Spell: TypeAlias = Callable[[exp.Expr], str]
"""Spells any expression."""

Speller: TypeAlias = Callable[[Any, Spell], str]
"""Spells one kind of node, its parts by what it is given."""


def label(node: exp.Expr, spell: Spell) -> str:
    """The name of a select item: its alias, its column's name, or its spelling."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Alias):
        return node.alias
    if isinstance(node, exp.Column):
        return node.name
    return spell(node)


def spell_name(name: str) -> str:
    """In quotes where it must be."""
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def spell_list(nodes: Sequence[exp.Expr], spell: Spell) -> str:
    """Between commas."""
    return ", ".join(map(spell, nodes))
