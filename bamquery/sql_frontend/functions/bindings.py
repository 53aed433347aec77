"""How calls of a name are bound: its entry says how many arguments it takes, its builder what it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Generic, TypeVar

from bamquery.function_catalog.entry import Entry
from bamquery.plan.expressions import Expression
from bamquery.sql_frontend.functions.coercion import decode

Bound = TypeVar("Bound")
Builder = Callable[[str, Sequence[Expression]], Bound]
"""The call from the name that it has in the statement, and its arguments."""


@dataclass(frozen=True)
class FunctionBinding(Generic[Bound]):
    """An entry, and what makes its builder when it is first called."""

    entry: Entry
    find_builder: Callable[[Entry], Builder[Bound]]

    @cached_property
    def builder(self) -> Builder[Bound]:
        """What makes a call."""
        return self.find_builder(self.entry)

    @cached_property
    def counts(self) -> tuple[int, int | None]:
        """The fewest arguments and the most, None where any number will do."""
        signatures = self.entry.parsed_signatures()
        least = min(signature.least for signature in signatures)
        if any(signature.repeated for signature in signatures):
            return least, None
        return least, max(len(signature.parameters) for signature in signatures)

    def bind(self, name: str, arguments: Sequence[Expression]) -> Bound:
        """The call under one of its names.

        Raises:
            ValueError: a number or type of arguments that it does not take.
        """
        check_count(name, len(arguments), *self.counts)
        return self.builder(name, [decode(argument) for argument in arguments])


def bindings(
    entries: Iterable[Entry], find_builder: Callable[[Entry], Builder[Bound]]
) -> Mapping[str, FunctionBinding[Bound]]:
    """Bindings of entries under all their names."""
    found = {}
    for entry in entries:
        found.update(dict.fromkeys(entry.all_names, FunctionBinding(entry, find_builder)))
    return MappingProxyType(found)


def check_count(name: str, count: int, least: int, most: int | None) -> None:
    """Raise `ValueError` where a function is called with too few or too many arguments."""
    if least <= count and (most is None or count <= most):
        return
    if most is None:
        wanted = f"at least {least} argument{'s' * (least != 1)}"
    elif least == most or not least:  # count() without arguments is another function, of rows
        wanted = f"{most} argument{'s' * (most != 1)}" if most else "no arguments"
    else:
        wanted = f"{least} {'or' if most == least + 1 else 'to'} {most} arguments"
    raise ValueError(f"{name.lower()}() takes {wanted}, not {count}")
