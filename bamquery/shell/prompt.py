"""The prompt: what one types into, with its keys, completions, colours and the line at the bottom."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, completion_is_selected, has_focus, in_paste_mode, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from bamquery.shell.completion.completer import ShellCompleter
from bamquery.shell.database_opening import Opening
from bamquery.shell.highlighting import SqlHighlighter
from bamquery.shell.input_text import is_complete
from bamquery.shell.prompt_strings import CONTINUATION, PROMPT
from bamquery.shell.terminal_state import left_tidily

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

    from bamquery.shell.shell import Shell


_MENU_LINES: Final = 9


class Prompt:
    """Asks for one input after the other."""

    def __init__(
        self,
        shell: Shell,
        completer: ShellCompleter,
        *,
        source: Input | None = None,
        screen: Output | None = None,
    ) -> None:
        """`source` and `screen` instead of the terminal."""
        self._shell = shell
        self._failure: Exception | None = None
        self._session: PromptSession[str] = PromptSession(
            message=[("class:prompt", PROMPT)],
            prompt_continuation=_continuation,
            multiline=True,
            lexer=SqlHighlighter(),
            completer=completer,
            complete_while_typing=Condition(lambda: shell.options.completing),
            complete_in_thread=True,
            reserve_space_for_menu=_MENU_LINES,
            history=shell.history,
            auto_suggest=AutoSuggestFromHistory() if shell.console.theme.background != "plain" else None,
            enable_history_search=False,
            enable_open_in_editor=True,
            enable_suspend=True,
            tempfile_suffix=".sql",
            bottom_toolbar=self._toolbar,
            key_bindings=_bindings(),
            include_default_pygments_style=False,
            input=source,
            output=screen,
        )
        self._session.app.after_render += self._start_opening

    def ask(self) -> str:
        """The next input.

        Raises:
            EOFError: the user leaves. KeyboardInterrupt: the line was cleared.
            Exception: what went wrong when the database was opened.
        """
        draft, self._shell.draft = self._shell.draft, ""
        vi = self._shell.options.editing == "vi"
        with left_tidily(self._session.app):
            text = self._session.prompt(
                default=draft,
                editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
                style=self._shell.console.theme.style(),
                handle_sigint=False,
            )
        source = self._session.app.input
        ahead = get_typeahead(source)
        if any(press.key == Keys.ControlC for press in ahead):
            raise KeyboardInterrupt  # pressed at once after Enter, so meant for what would run now
        store_typeahead(source, ahead)
        return text

    def _start_opening(self, application: Application[str]) -> None:
        """Once the prompt can be seen: importing the engine takes longer than it may."""

        def on_finish(opening: Opening) -> None:
            def tell() -> None:
                if opening.failure is not None and application.is_running:
                    with suppress(Exception):  # the input was accepted at this very moment
                        application.exit(exception=opening.failure)
                application.invalidate()

            loop = application.loop
            if loop is not None and loop.is_running():
                loop.call_soon_threadsafe(tell)
            self._shell.changed()

        self._shell.opening.start(on_finish)

    def _toolbar(self) -> StyleAndTextTuples:
        opening = self._shell.opening
        state = opening.device if opening.is_ready else "opening ..."
        parts = [
            opening.database + " (made new)" * opening.is_new_database,
            state,
            self._shell.options.display.format,
        ]
        if self._shell.options.editing == "vi":
            mode = get_app().vi_state.input_mode.value.rpartition("-")[2]
            parts.append(f"vi {mode}")
        if self._shell.history is not None and self._shell.history.private:
            parts.append("private")
        return [("class:bottom-toolbar", f" {' · '.join(parts)} · .help")]


def _continuation(width: int, number: int, wrapped: int) -> StyleAndTextTuples:
    return [("class:continuation", (" " * width if wrapped else CONTINUATION.rjust(width))[:width])]


def _bindings() -> KeyBindings:
    bindings = KeyBindings()
    typing: Callable[[], bool] = has_focus("DEFAULT_BUFFER")

    @bindings.add("enter", filter=Condition(typing) & ~is_searching & ~completion_is_selected)
    def run_or_break(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.on_last_line and is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=not in_paste_mode())

    @bindings.add("enter", filter=Condition(typing) & completion_is_selected)
    def take_completion(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @bindings.add("escape", "enter", filter=Condition(typing) & ~is_searching)
    def run(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @bindings.add("tab", filter=Condition(typing))
    def complete(event: KeyPressEvent) -> None:
        _complete(event.current_buffer)

    return bindings


def _complete(buffer: Buffer) -> None:
    """The best completion, then one after the other; spaces at the beginning of a line of several."""
    before = buffer.document.current_line_before_cursor
    if not before.strip() and buffer.document.line_count > 1:
        buffer.insert_text("    ")
        return
    state = buffer.complete_state
    if state is not None and state.completions:
        buffer.complete_next()
        return
    # Not start_completion(): it does nothing while what was typed before is still being completed.
    asked = CompleteEvent(completion_requested=True)
    found = list(buffer.completer.get_completions(buffer.document, asked))
    if found:
        buffer.complete_state = CompletionState(buffer.document, found)
        buffer.go_to_completion(0)
