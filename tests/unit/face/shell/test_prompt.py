"""The prompt's keys and colours, without a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from bamquery.errors import BamQueryError
from bamquery.shell.completion.completer import ShellCompleter
from bamquery.shell.completion.names import Names
from bamquery.shell.highlighting import SqlHighlighter, highlight_line
from bamquery.shell.prompt import Prompt
from bamquery.shell.shell import Shell
from bamquery.shell.themes import theme, theme_for


@pytest.fixture
def pipe() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


@pytest.fixture
def prompt(shell: Shell, pipe: PipeInput) -> Prompt:
    completer = ShellCompleter(Names(lambda: shell.opening), shell)
    return Prompt(shell, completer, source=pipe, screen=DummyOutput())


def test_enter_waits_for_the_end_of_a_statement(prompt: Prompt, pipe: PipeInput) -> None:
    pipe.send_text("SELECT\r';'\r, 1;\r")
    assert prompt.ask() == "SELECT\n';'\n, 1;"


def test_commands_need_no_semicolon(prompt: Prompt, pipe: PipeInput) -> None:
    pipe.send_text(".tables\r")
    assert prompt.ask() == ".tables"


def test_alt_enter_runs_at_once(prompt: Prompt, pipe: PipeInput) -> None:
    pipe.send_text("SELECT 1\x1b\r")
    assert prompt.ask() == "SELECT 1"


def test_enter_within_a_statement_breaks_the_line(prompt: Prompt, pipe: PipeInput) -> None:
    pipe.send_text("SELECT 1\r, 2;\x1b[A\x1b[F\r, 1.5\x1b[B\x1b[F\r")
    assert prompt.ask() == "SELECT 1\n, 1.5\n, 2;"


def test_a_paste_of_ten_thousand_lines(prompt: Prompt, pipe: PipeInput) -> None:
    text = "SELECT 'a;\nb' -- x\n" + "".join(f", {n} AS c{n}\n" for n in range(10_000)) + ";"
    # A pipe holds less: somebody else fills it.
    sender = threading.Thread(target=pipe.send_text, args=(f"\x1b[200~{text}\x1b[201~\r",), daemon=True)
    sender.start()
    assert prompt.ask() == text
    sender.join(60)


def test_ctrl_c_and_ctrl_d(prompt: Prompt, pipe: PipeInput) -> None:
    pipe.send_text("SELECT\x03")
    with pytest.raises(KeyboardInterrupt):
        prompt.ask()
    pipe.send_text("\x04")
    with pytest.raises(EOFError):
        prompt.ask()


def test_ctrl_c_right_behind_enter_is_for_what_would_run(prompt: Prompt, pipe: PipeInput) -> None:
    pipe.send_text("SELECT 1;\r\x03")
    with pytest.raises(KeyboardInterrupt):
        prompt.ask()
    pipe.send_text("SELECT 2;\rSELECT 3;\r")
    assert [prompt.ask(), prompt.ask()] == ["SELECT 2;", "SELECT 3;"]


def test_keys_of_vi(prompt: Prompt, pipe: PipeInput, shell: Shell) -> None:
    shell.options.editing = "vi"
    pipe.send_text("SELECT 1;\x1b0wr2\r")
    assert prompt.ask() == "SELECT 2;"


def test_the_history_is_searched(prompt: Prompt, pipe: PipeInput) -> None:
    pipe.send_text("SELECT 'needle';\r")
    prompt.ask()
    pipe.send_text("SELECT 2;\r")
    prompt.ask()
    pipe.send_text("\x12need\r\r")
    assert prompt.ask() == "SELECT 'needle';"


def test_entries_of_several_lines_come_back(prompt: Prompt, pipe: PipeInput) -> None:
    pipe.send_text("SELECT\r1;\r")
    prompt.ask()
    pipe.send_text("\x1b[A\r")
    assert prompt.ask() == "SELECT\n1;"


def test_a_draft_is_there_to_be_edited(prompt: Prompt, pipe: PipeInput, shell: Shell) -> None:
    shell.draft = "SELECT 1"
    pipe.send_text(" + 1;\r")
    assert prompt.ask() == "SELECT 1 + 1;"
    assert shell.draft == ""


def test_a_database_that_cannot_be_opened_ends_the_prompt(pipe: PipeInput, shell: Shell) -> None:
    opening = shell.opening
    opening._failure = BamQueryError("broken")
    opening._over.set()
    completer = ShellCompleter(Names(lambda: opening), shell)
    failing = Prompt(shell, completer, source=pipe, screen=DummyOutput())

    def start(finished: object) -> None:
        assert callable(finished)
        finished(opening)

    opening.start = start  # type: ignore[assignment, method-assign]
    with pytest.raises(BamQueryError, match="broken"):
        failing.ask()


def styles(line: str) -> dict[str, str]:
    lexer = SqlHighlighter()
    pieces = lexer.lex_document(Document(line))(0)
    assert fragment_list_to_text(pieces) == line
    return {text: style.removeprefix("class:pygments.") for style, text, *_ in pieces if text.strip()}


def test_colours_by_kind() -> None:
    found = styles("SELECT count(x) AS n, left(y, 1), t.left, 'a' FROM \"T\" -- c")
    assert found["SELECT"] == found["FROM"] == "keyword"
    assert found["count"] == "name.function"
    assert found["x"] == "name"
    assert found["'a'"] == "literal.string"
    assert found['"T"'] == "name.variable"
    assert found["-- c"] == "comment"
    assert styles("SELECT left(y, 1)")["left"] == "name.function"
    assert styles("SELECT t.left")["left"] == "name"
    assert styles("CAST(x AS DATE)")["DATE"] == "keyword.type"
    assert styles(".tables x")[".tables x"] == "name.decorator"


def test_colours_go_on_over_lines_and_follow_changes() -> None:
    lexer = SqlHighlighter()
    closed = lexer.lex_document(Document("SELECT 1\nFROM t\n;"))
    assert closed(1)[0] == ("class:pygments.keyword", "FROM")
    opened = lexer.lex_document(Document("SELECT '1\nFROM t\n;"))
    assert opened(1) == [("class:pygments.literal.string", "FROM t")]
    assert lexer.lex_document(Document("SELECT 1\nFROM t\n;"))(1)[0] == ("class:pygments.keyword", "FROM")
    assert opened(7) == []


def test_lines_of_a_paste_are_looked_at_once() -> None:
    lexer = SqlHighlighter()
    lines = [f", {n} AS other{n}" for n in range(10_000)]
    before = highlight_line.cache_info()
    lexer.lex_document(Document("\n".join(["SELECT 1", *lines])))(10_000)
    middle = highlight_line.cache_info()
    assert middle.misses - before.misses >= 9_000
    lexer.lex_document(Document("\n".join(["SELECT 1", *lines, ";"])))(10_001)
    after = highlight_line.cache_info()
    assert after.misses - middle.misses <= 2
    assert after.hits - middle.hits <= 10


def test_themes() -> None:
    assert theme_for({"COLORFGBG": "0;15"}).name == "light"
    assert theme_for({"COLORFGBG": "15;0"}).name == "dark"
    assert theme_for({}).name == "dark"
    assert theme_for({"NO_COLOR": "1"}).background == "plain"
    assert theme_for({"NO_COLOR": "", "TERM": "xterm"}).name == "dark"
    assert theme_for({"TERM": "dumb"}).background == "plain"
    assert theme("dracula").background == "dark"
    assert theme("friendly").background == "light"
    assert theme("plain").paint("x", "error") == "x"
    assert theme("dark").paint("x", "error") == "\x1b[91mx\x1b[0m"


def test_the_prompt_needs_no_engine() -> None:
    import subprocess

    code = (
        "import sys, bamquery.shell.start, bamquery.shell.prompt, bamquery.shell.completion.completer\n"
        "print([m for m in ('pyarrow', 'numpy', 'sqlglot', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
