"""Commands about the shell itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bamquery.errors import BamQueryError
from bamquery.shell.commands.command import SWITCH, Command, CommandArguments, UsageError, choice, switch
from bamquery.shell.commands.help import command_help, function_help, overview
from bamquery.text.identifiers import suggestion

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell

_HISTORY_WORDS: Final = ("shared", "private", "clear")
_SHOWN_ENTRIES: Final = 20


def _help(shell: Shell, words: CommandArguments) -> None:
    from bamquery.shell.commands.registry import COMMANDS, GROUPS  # noqa: PLC0415 (which is made of this)

    name = words.optional("a command or a function")
    if name is None:
        shell.show(overview(GROUPS, shell.width))
        return
    command = COMMANDS.get(name) or COMMANDS.get("." + name)
    if command is not None:
        shell.console.write_lines(command_help(command, shell.width))
        return
    found = function_help(name)
    if found is None:
        near = suggestion("." + name.lstrip(".\\"), COMMANDS)
        raise BamQueryError(f'there is no command or function "{name}".{near} .help lists the commands')
    shell.console.write_lines(found)


def _quit(shell: Shell, words: CommandArguments) -> None:
    words.expect_end()
    shell.leaving = True


def _history(shell: Shell, words: CommandArguments) -> None:
    history = shell.history
    if history is None:
        raise BamQueryError("there is no history where nobody types")
    word = words.optional("shared, private or clear, or a number")
    if word is None or word.isdecimal():
        entries = history.get_strings()[-int(word or _SHOWN_ENTRIES) :]
        for entry in entries:
            shell.console.write_lines(entry)
        kept = "private: it is forgotten with this shell" if history.private else "shared by all shells"
        shell.console.dim(f"{len(entries)} of {len(history.get_strings()):,} entries, {kept}")
        return
    match choice(word, _HISTORY_WORDS, "history"):
        case "clear":
            try:
                history.clear()
            except OSError as error:
                raise BamQueryError(f"the history cannot be removed: {error}") from None
            shell.console.dim("the history is empty")
        case chosen:
            history.private = chosen == "private"
            shell.console.dim(f"history {chosen}")


def _complete(shell: Shell, words: CommandArguments) -> None:
    shell.options.completing = switch(words, shell.options.completing)
    shell.console.dim(
        "completions come while typing" if shell.options.completing else "completions come by TAB"
    )


def _echo(shell: Shell, words: CommandArguments) -> None:
    if not words.raw:
        raise UsageError("it takes a text")
    shell.console.write_lines(" ".join(words.listed))


SESSION: Final = (
    Command(
        "help",
        "[COMMAND | FUNCTION]",
        "this list, more about a command, or how a function is called",
        _help,
        psql=("\\?", "\\h"),
        completes="commands",
        early=True,
    ),
    Command(
        "history",
        "[N|shared|private|clear]",
        "what was typed; private is not written down",
        _history,
        psql=("\\s",),
        completes=_HISTORY_WORDS,
        early=True,
        details="All shells of a user share one file, which nobody else may read. Ctrl-R searches it. "
        "private: what is typed from now on is known to this shell only; bamquery --no-history begins "
        "so.",
    ),
    Command(
        "complete",
        "[on|off]",
        "completions while typing; TAB always has them",
        _complete,
        completes=SWITCH,
        early=True,
    ),
    Command("echo", "TEXT", "write a text, for scripts", _echo, early=True),
    Command("quit", "", "leave; Ctrl-D does, too", _quit, psql=("\\q", ".exit"), early=True),
)
