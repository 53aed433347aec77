"""Commands about how answers look."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from bamquery.output.display_options import FORMATS
from bamquery.shell.commands.command import (
    SWITCH,
    Command,
    CommandArguments,
    UsageError,
    choice,
    count,
    switch,
)
from bamquery.shell.options import PAGER_CHOICES
from bamquery.shell.themes import theme

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell

_LINE: Final = "line"
_TABLE: Final = "table"


def _change(shell: Shell, **changes: Any) -> None:
    shell.options.display = replace(shell.options.display, **changes)


def _mode(shell: Shell, words: CommandArguments) -> None:
    if not words.listed:
        for name, what in FORMATS.items():
            here = "*" if name == shell.options.display.format else " "
            shell.console.write_lines(f" {here} {name:<9} {what}")
        return
    name = choice(words.listed[0], tuple(FORMATS), "format")
    if len(words.listed) > 2 or (len(words.listed) == 2 and name != "insert"):
        raise UsageError("it takes a format; insert takes a table's name as well")
    _change(shell, format=name, **({"table_name": words.listed[1]} if len(words.listed) == 2 else {}))
    shell.console.dim(f"mode {name}: {FORMATS[name]}")


def _set_expanded(shell: Shell, words: CommandArguments) -> None:
    wanted = switch(words, shell.options.display.format == _LINE)
    _change(shell, format=_LINE if wanted else _TABLE)
    shell.console.dim(f"mode {shell.options.display.format}: {FORMATS[shell.options.display.format]}")


def _headers(shell: Shell, words: CommandArguments) -> None:
    _change(shell, headers=switch(words, shell.options.display.headers))
    shell.console.dim(f"headers {_on_or_off(shell.options.display.headers)}")


def _null_value(shell: Shell, words: CommandArguments) -> None:
    text = words.optional("a text")
    _change(shell, null_value=text)
    shell.console.dim("NULL as each format writes it" if text is None else f"NULL is written {text!r}")


def _width(shell: Shell, words: CommandArguments) -> None:
    widths = tuple(count(word) for word in words.listed)
    _change(shell, column_widths=widths)
    said = (
        " ".join(map(str, widths)) if widths else "as wide as their values, and all as wide as the terminal"
    )
    shell.console.dim(f"columns: {said}")


def _max_rows(shell: Shell, words: CommandArguments) -> None:
    word = words.optional("a number, or 0 for all")
    _change(shell, max_rows=None if word is None else count(word))
    limit = shell.options.display.row_limit
    shell.console.dim(f"{limit} rows are shown" if limit else "all rows are shown")


def _timer(shell: Shell, words: CommandArguments) -> None:
    wanted = switch(words, shell.options.display.timer)
    _change(shell, timer=wanted, statistics=wanted)
    shell.console.dim(f"timer {_on_or_off(wanted)}")


def _pager(shell: Shell, words: CommandArguments) -> None:
    if not words.listed:
        shell.console.write_lines(f"pager {shell.options.pager}")
        return
    word = words.listed[0]
    if len(words.listed) == 1 and word.lower() in PAGER_CHOICES:
        shell.options.pager = word.lower()
    elif shutil.which(word) is None:
        raise UsageError(f"there is no command {word!r}; it takes auto, on, off or a command")
    else:
        shell.options.pager = shlex.join(words.listed)
    shell.console.dim(f"pager {shell.options.pager}")


def _theme(shell: Shell, words: CommandArguments) -> None:
    name = words.optional("a theme")
    if name is not None:
        shell.console.theme = theme(name)
    shell.console.write_lines(f"theme {shell.console.theme.name}")


def _on_or_off(value: bool) -> str:
    return "on" if value else "off"


SHOWING: Final = (
    Command(
        "mode",
        "[FORMAT]",
        "how answers are written",
        _mode,
        completes=tuple(FORMATS),
        details="\n".join(f"  {name:<9} {what}" for name, what in FORMATS.items()),
        early=True,
    ),
    Command(
        "expanded",
        "[on|off]",
        "a line for each value instead of a table",
        _set_expanded,
        psql=("\\x",),
        completes=SWITCH,
        early=True,
    ),
    Command("headers", "[on|off]", "names of columns above answers", _headers, completes=SWITCH, early=True),
    Command("nullvalue", "[TEXT]", "what NULL looks like", _null_value, early=True),
    Command(
        "width",
        "[N ...]",
        "widths of columns, from the first on; 0 is as wide as needed",
        _width,
        early=True,
        details="Without numbers each column is as wide as its values, and columns that do not fit the "
        "terminal are left out in the middle; the line below the table says how many. The pager has "
        "all.",
    ),
    Command(
        "maxrows",
        "[N]",
        "rows that tables show; 0 is all, nothing is 40",
        _max_rows,
        early=True,
        details="A pager has up to 10,000 rows where this says nothing. Rows that are not shown are counted.",
    ),
    Command(
        "timer",
        "[on|off]",
        "time, bytes read and amplification below answers",
        _timer,
        psql=("\\timing",),
        completes=SWITCH,
        early=True,
        details="Amplification is bytes read over bytes needed. What the page cache had counts as read, too.",
    ),
    Command(
        "pager",
        "[auto|on|off|COMMAND]",
        "answers that do not fit the screen, page by page",
        _pager,
        completes=PAGER_CHOICES,
        early=True,
        details="auto pages answers that are wider or longer than the screen. The built-in pager keeps names "
        "of columns in sight: arrows scroll, / searches, q leaves. .pager less -S takes another.",
    ),
    Command(
        "theme",
        "[dark|light|plain|STYLE]",
        "colours: for dark or light terminals, or any style of Pygments",
        _theme,
        completes=("dark", "light", "plain"),
        early=True,
        details="NO_COLOR and TERM=dumb choose plain. COLORFGBG, which some terminals set, chooses light or "
        "dark.",
    ),
)
