"""What `.help` says."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bamquery.shell.commands.command import Command

KEYS: Final = (
    ("Enter", "runs what ends with ; and goes to a new line where it does not end yet"),
    ("Alt-Enter", "runs what has no ; at its end"),
    ("Tab, ↑, ↓", "complete; the entries before and after in the history"),
    ("Ctrl-R", "searches the history"),
    ("Ctrl-C", "stops a query, and clears what is typed"),
    ("Ctrl-D", "leaves"),
    ("Ctrl-X Ctrl-E", "opens $VISUAL or $EDITOR on what is typed"),
)
_NAMES: Final = 30
_WIDEST: Final = 100


def overview(groups: Mapping[str, Iterable[Command]], width: int) -> str:
    """All commands, by groups, and the keys."""
    lines = []
    for title, commands in groups.items():
        lines.append(title)
        for command in commands:
            also = f" ({', '.join(command.psql)})" if command.psql else ""
            lines += _entry(f".{command.name} {command.usage}".rstrip(), command.summary + also, width)
    lines.append("Keys")
    for keys, what in KEYS:
        lines += _entry(keys, what, width)
    return "\n".join(lines)


def command_help(command: Command, width: int) -> str:
    """How a command is written, what it does, and what else it is called."""
    lines = [f".{command.name} {command.usage}".rstrip(), f"  {command.summary}"]
    if command.psql:
        lines.append(f"  also: {', '.join(command.psql)}")
    for line in command.details.splitlines():
        lines += textwrap.wrap(line, min(width, _WIDEST) - 2, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def function_help(name: str) -> str | None:
    """How a function is called, or None where there is none of that name."""
    from bamquery.function_catalog.function_reference import function_records  # noqa: PLC0415 (350 functions)

    lines = []
    for record in function_records(name.removesuffix("()")):
        lines += [*record.usages, f"  {record.entry.description}"]
        if record.entry.example:
            lines.append(f"  {record.entry.example}")
    return "\n".join(lines) if lines else None


def _entry(name: str, what: str, width: int) -> list[str]:
    """A name and what it is, in two columns; a long name has a line of its own."""
    room = max(min(width, _WIDEST) - _NAMES - 3, 20)
    first, *others = textwrap.wrap(what, room)
    indent = " " * (_NAMES + 2)
    if len(name) > _NAMES - 1:
        return [f"  {name}", *(indent + line for line in (first, *others))]
    return [f"  {name:<{_NAMES}}{first}", *(indent + line for line in others)]
