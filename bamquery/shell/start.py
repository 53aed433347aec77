"""`bamquery DB` where standard input is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from bamquery import __version__
from bamquery.errors import BamQueryError
from bamquery.output.display_options import DisplayOptions
from bamquery.shell.commands.registry import call_command, find, split_name
from bamquery.shell.console import Console
from bamquery.shell.database_opening import Opening
from bamquery.shell.editor import prefers_vi
from bamquery.shell.history import ShellHistory, history_path
from bamquery.shell.options import ShellOptions
from bamquery.shell.plain_input import PlainPrompt
from bamquery.shell.shell import Shell
from bamquery.shell.themes import theme_for

OK: Final = 0
FAILED: Final = 1


def run_shell(
    database: str,
    settings: Mapping[str, object],
    display: DisplayOptions,
    *,
    keep_history: bool = True,
) -> int:
    """Ask for statements and run them until the user leaves; returns the exit status.

    Where standard output is no terminal, statements come from the terminal line by line without prompts, as
    psql has it, and the first failure is the exit status.

    Args:
        database: its folder, or `:memory:`.
        settings: of the connection, by name.
        display: how answers are shown at first.
        keep_history: whether what is typed is written down.
    """
    interactive = sys.stdout.isatty()
    console = Console(theme_for())
    history = _history(console, keep_history) if interactive else None
    options = ShellOptions(replace(display, statistics=True))
    options.editing = "vi" if prefers_vi() else "emacs"
    opening = Opening(database, settings)
    console.quiet = not interactive
    shell = Shell(opening, options, console, history, interactive=interactive, settings=settings)
    try:
        if interactive:
            _configure(shell)
            name = "a temporary database" if database == ":memory:" else database
            console.write_lines(f"BamQuery {__version__}, {name}. .help lists commands, Ctrl-D leaves.")
        return _loop(shell, _ask(shell, interactive))
    finally:
        shell.close()


def configuration_path(environment: Mapping[str, str] = os.environ) -> Path:
    """`$XDG_CONFIG_HOME/bamquery/shellrc`, `~/.config` where that is not set.

    Raises:
        RuntimeError: there is no home.
    """
    folder = environment.get("XDG_CONFIG_HOME", "")
    home = Path(folder) if folder.startswith("/") else Path("~/.config").expanduser()
    return home / "bamquery" / "shellrc"


def _loop(shell: Shell, ask: Callable[[], str]) -> int:
    status = OK
    while not shell.leaving:
        try:
            text = ask()
        except EOFError:
            break
        except KeyboardInterrupt:
            continue
        except OSError:
            raise
        except Exception as error:
            if error is not shell.opening.failure:
                raise
            shell.complain(error)
            return FAILED
        try:
            done = shell.run(text.splitlines(keepends=True))
        except KeyboardInterrupt:  # between two statements, or in a command
            shell.console.error("cancelled")
            done = False
        if not done and not shell.interactive:
            status = FAILED
        if shell.opening.failure is not None:
            return FAILED
    return status


def _ask(shell: Shell, interactive: bool) -> Callable[[], str]:
    if not interactive:
        return PlainPrompt(shell, prompts=False).ask
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return PlainPrompt(shell, prompts=True).ask
    from bamquery.shell.completion.completer import ShellCompleter  # noqa: PLC0415 (not for plain terminals)
    from bamquery.shell.completion.names import Names  # noqa: PLC0415
    from bamquery.shell.prompt import Prompt  # noqa: PLC0415

    names = Names(lambda: shell.opening)
    shell.changed = names.refresh
    return Prompt(shell, ShellCompleter(names, shell)).ask


def _history(console: Console, keep: bool) -> ShellHistory:
    try:
        path = history_path()
    except RuntimeError as error:  # there is no home
        console.note(f"history is not kept: {error}")
        return ShellHistory(Path(os.devnull), console.note, private=True)
    history = ShellHistory(path, console.note, private=not keep)
    history.prepare()
    history.shorten()
    return history


def _configure(shell: Shell) -> None:
    """Call the commands of the configuration file; one that is wrong does not keep the others from it."""
    try:
        path = configuration_path()
        lines = path.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, RuntimeError):
        return
    except (OSError, UnicodeDecodeError) as error:
        shell.console.note(f"{path} cannot be read: {error}")
        return
    shell.console.quiet = True
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith(("--", "#")):
            continue
        try:
            if not text.startswith((".", "\\")) or not find(split_name(text)[0]).early:
                raise BamQueryError("only commands that need no database may stand here")
            call_command(shell, text)
        except BamQueryError as error:
            shell.console.note(f"{path}, line {number}: {error}")
    shell.console.quiet = False
