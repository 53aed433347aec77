"""Answers that are wider or longer than the screen: all columns, by scrolling, under the names of columns.

`less` can be asked for; it folds or cuts lines by its own flags, and lets the header scroll away.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bamquery.errors import BamQueryError
from bamquery.shell.console import Console
from bamquery.shell.options import PAGER_CHOICES
from bamquery.shell.terminal_state import left_tidily
from bamquery.text.terminal import cell_width

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output


@dataclass
class Page:
    """Lines and the part of them that is on the screen.

    Attributes:
        lines: all of them, without control characters.
        title: what they are, for the last line of the screen.
        header_lines: of these, those at the beginning that stay where they are.
        top: the first line below the header that is shown, from 0.
        left: the first column that is shown.
        found: what was searched for last.
    """

    lines: list[str]
    title: str = ""
    header_lines: int = 0
    top: int = 0
    left: int = 0
    found: str = ""
    widest: int = field(init=False)

    def __post_init__(self) -> None:
        self.widest = max((cell_width(line) for line in self.lines), default=0)

    def visible_lines(self, width: int, height: int) -> list[str]:
        """The lines to show, cut to a width; `scroll` keeps them within the page."""
        header = self.lines[: self.header_lines]
        body = self.lines[self.header_lines :][self.top :][: max(height - len(header), 1)]
        return [_cut_columns(line, self.left, width) for line in [*header, *body][:height]]

    def scroll(self, rows: int, columns: int, width: int, height: int) -> None:
        """Go that far, but not beyond an edge."""
        below = len(self.lines) - self.header_lines - (height - self.header_lines)
        self.top = max(min(self.top + rows, below), 0)
        self.left = max(min(self.left + columns, self.widest - width), 0)

    def search(self, text: str, width: int, height: int, *, forward: bool = True) -> bool:
        """Go to the next line that has the text, in any case of letters; False where there is none."""
        self.found = text
        body = self.lines[self.header_lines :]
        after = range(self.top + 1, len(body)) if forward else range(self.top - 1, -1, -1)
        for position in [*after, *([] if not forward else range(self.top + 1))]:
            place = body[position].lower().find(text.lower())
            if place >= 0:
                self.scroll(position - self.top, 0, width, height)
                if not self.left <= place < self.left + width - len(text):
                    self.scroll(0, place - width // 2 - self.left, width, height)
                return True
        return False


def wrap_notes(text: str, width: int) -> list[str]:
    """Lines of a plan or a profile: notes, which are prose, folded to a width, all else as it is."""
    lines: list[str] = []
    for line in text.splitlines():
        is_note = line.lstrip().startswith("note: ")
        lines += textwrap.wrap(line, max(width, 20), subsequent_indent="      ") if is_note else [line]
    return lines


def is_paged(lines: Sequence[str], pager: str) -> bool:
    """Whether these lines go to the pager of `ShellOptions`: `auto` where they do not fit the screen."""
    if pager == "off":
        return False
    size = shutil.get_terminal_size()
    fits = len(lines) < size.lines - 1 and max(map(cell_width, lines), default=0) <= size.columns
    return not fits or pager == "on"


def page(content: Page, pager: str, console: Console) -> None:
    """Show it until the user leaves; `pager` is a command, or as in `ShellOptions` for the built-in one.

    Raises:
        BamQueryError: the command cannot be run.
    """
    if pager in PAGER_CHOICES:
        application = pager_application(content, colours=console.theme.background != "plain")
        with left_tidily(application):
            application.run()
        return
    text = "\n".join([*content.lines, content.title]) + "\n"
    try:
        # A pager that is left before it has read everything is no error.
        subprocess.run(shlex.split(pager), input=text.encode(errors="replace"), check=False)
    except (OSError, ValueError) as error:
        raise BamQueryError(
            f"the pager {pager!r} cannot be run: {error}; .pager auto is the built-in"
        ) from None


def pager_application(
    content: Page, *, colours: bool, source: Input | None = None, screen: Output | None = None
) -> Application[None]:
    """The built-in pager; `source` and `screen` instead of the terminal."""
    from prompt_toolkit.application import Application  # noqa: PLC0415 (not before there is something to page)
    from prompt_toolkit.layout import HSplit, Layout, Window  # noqa: PLC0415
    from prompt_toolkit.layout.controls import FormattedTextControl  # noqa: PLC0415

    from bamquery.shell.pager_keys import PagerKeys  # noqa: PLC0415

    keys = PagerKeys(content)

    def body() -> StyleAndTextTuples:
        width, height = keys.size()
        return [
            ("bold" if number < content.header_lines and colours else "", line + "\n")
            for number, line in enumerate(content.visible_lines(width, height))
        ]

    def status() -> StyleAndTextTuples:
        return [("reverse" if colours else "", _cut_columns(keys.status(), 0, keys.size()[0]))]

    return Application(
        layout=Layout(
            HSplit(
                [
                    Window(FormattedTextControl(body, focusable=True, show_cursor=False), wrap_lines=False),
                    Window(FormattedTextControl(status), height=1),
                ]
            )
        ),
        key_bindings=keys.bindings(),
        full_screen=True,
        input=source,
        output=screen,
    )


def _cut_columns(line: str, left: int, width: int) -> str:
    """The columns of a line from `left` on, at most `width` of them; half a wide character is a space."""
    if line.isascii():
        return line[left : left + width]
    place, kept = 0, []
    for char in line:
        size = cell_width(char)
        if place >= left and place + size <= left + width:
            kept.append(char)
        elif place < left < place + size:
            kept.append(" ")
        place += size
        if place >= left + width:
            break
    return "".join(kept)
