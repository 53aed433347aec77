"""Commands about tables and their columns."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Final

from bamquery.errors import CatalogError
from bamquery.shell.commands.command import Command, CommandArguments, quote_name
from bamquery.text.identifiers import fold_case, suggestion

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell


def _tables(shell: Shell, words: CommandArguments) -> None:
    pattern = words.optional("a pattern, such as trip*")
    connection = shell.connection
    views = {f"{name} (view)": name for name in connection.views}
    names = {**{name: name for name in connection.tables}, **views}
    listed = sorted(names, key=fold_case)
    if pattern is not None:
        listed = [
            shown for shown in listed if fnmatch.fnmatchcase(fold_case(names[shown]), fold_case(pattern))
        ]
    if not listed:
        what = "no table or view" if pattern is None else f"no table or view is called like {pattern}"
        shell.console.write_lines(
            what if pattern is not None else f"there is {what}: CREATE TABLE or .import makes one"
        )
        return
    shell.console.write_lines(format_columns(listed, shell.width))


def format_columns(names: list[str], width: int) -> str:
    """Names in as many columns as fit, downwards."""
    widest = max(map(len, names)) + 2
    columns = max((width + 2) // widest, 1)
    rows = -(-len(names) // columns)
    return "\n".join("".join(name.ljust(widest) for name in names[row::rows]).rstrip() for row in range(rows))


def _describe(shell: Shell, words: CommandArguments) -> bool | None:
    if not words.raw:
        _tables(shell, CommandArguments("", ()))
        return None
    from bamquery.shell.statement_runner import run_statements  # noqa: PLC0415 (it imports the engine)

    is_query = words.raw.partition(" ")[0].upper() in ("SELECT", "FROM", "WITH", "VALUES", "(SELECT")
    if is_query:
        return run_statements(shell, f"DESCRIBE {words.raw}", by_command=True)
    name = words.raw
    if name[:1] == '"' == name[-1:] and len(name) > 1:
        name = name[1:-1].replace('""', '"')
    return run_statements(shell, f"DESCRIBE {quote_name(_find_relation(shell, name))}", by_command=True)


def _find_relation(shell: Shell, name: str) -> str:
    """The name of a table or view.

    Raises:
        CatalogError: there is none; suggests the nearest.
    """
    names = [*shell.connection.tables, *shell.connection.views]
    if fold_case(name) not in map(fold_case, names):
        raise CatalogError(f'there is no table "{name}".{suggestion(name, names)} .tables lists them')
    return name


def _schema(shell: Shell, words: CommandArguments) -> None:
    shell.opening.connection()
    from bamquery.shell.commands.dump import dump_statements  # noqa: PLC0415 (it imports the engine)

    text = dump_statements(shell.connection, words.listed, rows=False).decode()
    shell.show(text.rstrip("\n") or "there is no table or view: CREATE TABLE or .import makes one")


CATALOGUE: Final = (
    Command(
        "tables",
        "[PATTERN]",
        "tables and views; * and ? stand for any letters",
        _tables,
        psql=("\\dt",),
        completes="tables",
    ),
    Command(
        "describe",
        "[TABLE | QUERY]",
        "columns and types of a table, view or query",
        _describe,
        psql=("\\d", "\\d+"),
        completes="sql",
    ),
    Command(
        "schema",
        "[TABLE ...]",
        "the statements that make tables and views",
        _schema,
        completes="tables",
    ),
)
