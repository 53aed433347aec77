"""Keys of the built-in pager: those of less and of vi, and arrows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from bamquery.shell.pager import Page

_STEP: Final = 8
"""Columns that an arrow key goes to the side."""
_FAR: Final = 1 << 40
_HELP: Final = "q: leave, /: search"


class PagerKeys:
    """What each key does to a page."""

    def __init__(self, content: Page) -> None:
        self._content = content
        self._typed: str | None = None
        self._said = ""

    def size(self) -> tuple[int, int]:
        """Columns and lines of the screen that the page has."""
        size = get_app().output.get_size()
        return size.columns, max(size.rows - 1, 1)

    def status(self) -> str:
        """The last line of the screen."""
        if self._typed is not None:
            return f"/{self._typed}"
        page = self._content
        width, height = self.size()
        body = len(page.lines) - page.header_lines
        last = min(page.top + height - page.header_lines, body)
        where = f"lines {page.top + 1:,}–{last:,} of {body:,}"
        right = min(page.left + width, page.widest)
        side = f"columns {page.left + 1:,}–{right:,} of {page.widest:,}" if page.widest > width else ""
        return " " + " · ".join(part for part in (self._said, where, side, _HELP, page.title) if part)

    def bindings(self) -> KeyBindings:
        """For prompt_toolkit."""
        bindings = KeyBindings()
        searching = Condition(lambda: self._typed is not None)

        def bind_scroll(
            *keys: str, rows: Callable[[int], int] = int, columns: Callable[[int], int] = int
        ) -> None:
            def scroll(event: KeyPressEvent) -> None:
                self._said = ""
                width, height = self.size()
                self._content.scroll(rows(height), columns(width), width, height)

            for key in keys:
                bindings.add(key, filter=~searching)(scroll)

        def no_rows(size: int) -> int:
            return 0

        bind_scroll("down", "j", "enter", "c-n", rows=lambda height: 1, columns=no_rows)
        bind_scroll("up", "k", "c-p", rows=lambda height: -1, columns=no_rows)
        bind_scroll("space", "pagedown", "f", "c-f", "c-v", rows=self._screenful, columns=no_rows)
        bind_scroll("b", "pageup", "c-b", rows=lambda height: -self._screenful(height), columns=no_rows)
        bind_scroll("d", "c-d", rows=lambda height: height // 2, columns=no_rows)
        bind_scroll("u", "c-u", rows=lambda height: -(height // 2), columns=no_rows)
        bind_scroll("g", "<", rows=lambda height: -_FAR, columns=no_rows)
        bind_scroll("G", ">", rows=lambda height: _FAR, columns=no_rows)
        bind_scroll("right", "l", rows=no_rows, columns=lambda width: _STEP)
        bind_scroll("left", "h", rows=no_rows, columns=lambda width: -_STEP)
        bind_scroll("s-right", "c-right", "tab", rows=no_rows, columns=lambda width: width // 2)
        bind_scroll("s-left", "c-left", "s-tab", rows=no_rows, columns=lambda width: -(width // 2))
        bind_scroll("home", "0", "^", rows=no_rows, columns=lambda width: -_FAR)
        bind_scroll("end", "$", rows=no_rows, columns=lambda width: _FAR)

        @bindings.add("q", filter=~searching)
        @bindings.add("Q", filter=~searching)
        @bindings.add("c-c", filter=~searching)
        def leave(event: KeyPressEvent) -> None:
            event.app.exit()

        @bindings.add("/", filter=~searching)
        def begin(event: KeyPressEvent) -> None:
            self._typed = ""

        @bindings.add("n", filter=~searching)
        def search_again(event: KeyPressEvent) -> None:
            self._search(self._content.found, forward=True)

        @bindings.add("N", filter=~searching)
        def search_back(event: KeyPressEvent) -> None:
            self._search(self._content.found, forward=False)

        @bindings.add("enter", filter=searching)
        def search(event: KeyPressEvent) -> None:
            typed, self._typed = self._typed, None
            self._search(typed or self._content.found, forward=True)

        @bindings.add("c-c", filter=searching)
        @bindings.add("escape", filter=searching)
        def stop(event: KeyPressEvent) -> None:
            self._typed = None

        @bindings.add("backspace", filter=searching)
        def shorten(event: KeyPressEvent) -> None:
            self._typed = self._typed[:-1] if self._typed else None

        @bindings.add(Keys.Any, filter=searching)
        def extend(event: KeyPressEvent) -> None:
            if event.data.isprintable():
                self._typed = (self._typed or "") + event.data

        return bindings

    def _screenful(self, height: int) -> int:
        return max(height - self._content.header_lines - 1, 1)

    def _search(self, text: str, *, forward: bool) -> None:
        width, height = self.size()
        hit = bool(text) and self._content.search(text, width, height, forward=forward)
        self._said = "" if hit or not text else f'"{text}" is not there'
