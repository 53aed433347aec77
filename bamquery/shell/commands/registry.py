"""The one table of dot-commands, and how a line finds its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bamquery.shell.commands.catalog import CATALOGUE
from bamquery.shell.commands.command import Command, CommandArguments, UsageError, split_words
from bamquery.shell.commands.display import SHOWING
from bamquery.shell.commands.files import FILES
from bamquery.shell.commands.machine import MACHINE
from bamquery.shell.commands.queries import QUERIES
from bamquery.shell.commands.session import SESSION
from bamquery.text.identifiers import suggestion

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell

GROUPS: Final[Mapping[str, tuple[Command, ...]]] = MappingProxyType(
    {
        "Tables": CATALOGUE,
        "Files": FILES,
        "Queries": QUERIES,
        "Answers": SHOWING,
        "Database and machine": MACHINE,
        "The shell": SESSION,
    }
)
"""All commands, as `.help` lists them."""

COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {f".{command.name}": command for group in GROUPS.values() for command in group}
    | {name: command for group in GROUPS.values() for command in group for name in command.psql}
)
"""By the name as it is typed."""


def call_command(shell: Shell, line: str) -> bool:
    """Do what a line says; returns whether that went well.

    Raises:
        BamQueryError: there is no such command, it does not take these words, or it failed.
    """
    name, raw = split_name(line)
    command = find(name)
    try:
        # A statement is no list of words.
        words = CommandArguments(raw, () if command.completes == "sql" else split_words(raw))
        return command.run(shell, words) is not False
    except UsageError as error:
        usage = f"{name} {command.usage}".rstrip()
        raise UsageError(f"{name}: {error}\nusage: {usage}") from None


def split_name(line: str) -> tuple[str, str]:
    """A command's name and what follows it; `;` at the end is a habit, not a part of it."""
    name, _, raw = line.strip().partition(" ")
    if not raw:
        name = name.rstrip(";")
    return name, raw.strip().rstrip(";").rstrip()


def find(name: str) -> Command:
    """The command of that name, dot or backslash included.

    Raises:
        UsageError: there is none; suggests the nearest.
    """
    command = COMMANDS.get(name) or COMMANDS.get(name.lower())
    if command is None:
        dotted = "." + name[1:]
        near = suggestion(dotted if name[:1] == "." else name, COMMANDS)
        raise UsageError(f'there is no command "{name}".{near} .help lists them all')
    return command
