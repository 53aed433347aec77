"""Commands that read and write files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bamquery.errors import BamQueryError
from bamquery.shell.commands.command import Command, CommandArguments, UsageError, choice, expand_path
from bamquery.shell.editor import edit_text
from bamquery.shell.options import EDITING_MODES

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell

_LARGEST_SCRIPT: Final = 256 << 20


def _read_script(shell: Shell, words: CommandArguments) -> bool:
    path = expand_path(words.single("a file"))
    try:
        if path.stat().st_size > _LARGEST_SCRIPT:
            raise BamQueryError(f"{path} is no script: it has more than 256 MiB. .import loads data")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BamQueryError(f"{path} is not text in UTF-8: {error}") from None
    except OSError as error:
        raise BamQueryError(f"{path} cannot be read: {error.strerror or error}") from None
    return shell.run_script(str(path.absolute()), text)


def _import(shell: Shell, words: CommandArguments) -> None:
    usage = "a file or pattern, a table, and perhaps --replace"
    replace = "--replace" in words.listed
    listed = [word for word in words.listed if word != "--replace"]
    if len(listed) != 2:
        raise UsageError(f"it takes {usage}")
    shell.opening.connection()
    from bamquery.shell.commands.file_import import import_file  # noqa: PLC0415 (it imports the engine)

    import_file(shell, str(expand_path(listed[0])), listed[1], replace=replace)
    shell.changed()


def _dump(shell: Shell, words: CommandArguments) -> None:
    path = expand_path(words.single("a file"))
    shell.opening.connection()
    from bamquery.shell.commands.dump import dump_to  # noqa: PLC0415 (it imports the engine)

    dump_to(shell.connection, path)
    shell.console.dim(f"wrote all tables and views to {path}: .read makes them again")


def _output(shell: Shell, words: CommandArguments) -> None:
    path = words.optional("a file")
    shell.answers.redirect(None if path is None else str(expand_path(path)))
    shell.console.dim(
        "answers go to the screen" if path is None else f"answers go to {path}, which is there after .output"
    )


def _redirect_once(shell: Shell, words: CommandArguments) -> None:
    path = str(expand_path(words.single("a file")))
    shell.answers.redirect_once(path)
    shell.console.dim(f"the next answer goes to {path}")


def _edit(shell: Shell, words: CommandArguments) -> None:
    mode = words.raw.split()
    if len(mode) == 2 and mode[0] == "mode":
        shell.options.editing = choice(mode[1], EDITING_MODES, "kind of keys")
        return
    if not shell.interactive:
        raise UsageError("there is no terminal to edit on")
    shell.draft = edit_text(words.raw or shell.latest)


FILES: Final = (
    Command(
        "read",
        "FILE",
        "run the statements and commands of a file",
        _read_script,
        psql=("\\i",),
        completes="files",
        details="It stops at the first failure. What was done before it stays done.",
    ),
    Command(
        "import",
        "FILE TABLE [--replace]",
        "load Parquet, CSV, JSON or Arrow files into a table",
        _import,
        psql=("\\copy",),
        completes="files",
        details="It says what the file was taken for (delimiter, header, columns and types), then loads it: "
        "all rows or none. A table that exists gets the rows as well, by columns' names; with "
        "--replace it has them alone. FILE may be a pattern in quotes: '2024-*.parquet'.",
    ),
    Command(
        "output",
        "[FILE]",
        "send answers to a file; without FILE to the screen again",
        _output,
        psql=("\\o",),
        completes="files",
        details="The file is there, complete, once .output is called again or the shell is left.",
    ),
    Command(
        "once",
        "FILE",
        "send the next answer to a file",
        _redirect_once,
        completes="files",
        details="In the format of .mode: .mode parquet, .once trips.parquet, then a query.",
    ),
    Command(
        "dump",
        "FILE",
        "write the database as SQL, rows included",
        _dump,
        completes="files",
        details="The file is there once it is complete. bamquery dump writes single tables.",
    ),
    Command(
        "edit",
        "[SQL | mode emacs|vi]",
        "edit the latest statement in $VISUAL or $EDITOR",
        _edit,
        psql=("\\e",),
        completes="sql",
        details="What is saved is at the prompt then, to be run by Enter. The same for what is being typed: "
        "Ctrl-X Ctrl-E, or v in vi's command mode. .edit mode vi gives the prompt vi's keys; it has "
        "them from the beginning where $VISUAL or $EDITOR is vi, vim or nvim.",
    ),
)
