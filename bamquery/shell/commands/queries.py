"""Commands about queries: their plans and what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bamquery.errors import BamQueryError
from bamquery.shell.commands.command import Command, CommandArguments

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell


def _statement(shell: Shell, words: CommandArguments) -> str:
    text = words.raw or shell.latest
    if not text:
        raise BamQueryError("no statement was run yet: write one behind the command")
    return text


def _explain(shell: Shell, words: CommandArguments) -> bool:
    from bamquery.shell.statement_runner import run_statements  # noqa: PLC0415 (it imports the engine)

    return run_statements(shell, f"EXPLAIN {_statement(shell, words)}", by_command=True)


def _analyze(shell: Shell, words: CommandArguments) -> bool | None:
    """The latest run's profile, or that of a statement that is run for it."""
    if words.raw:
        from bamquery.shell.statement_runner import run_statements  # noqa: PLC0415 (as above)

        return run_statements(shell, f"EXPLAIN ANALYZE {words.raw}", by_command=True)
    profile = shell.answers.profile
    if profile is None:
        raise BamQueryError("no query was run yet: .profile SELECT ... runs one and measures it")
    from bamquery.engine.explain.text_tree import explain_profile  # noqa: PLC0415 (as above)

    shell.show(explain_profile(profile))
    return None


QUERIES: Final = (
    Command(
        "explain",
        "[SQL]",
        "the plan of a statement, or of the latest one, without running it",
        _explain,
        completes="sql",
        details="With what each scan is expected to read. .profile says what a query did read.",
    ),
    Command("plan", "[SQL]", "the same as .explain", _explain, completes="sql"),
    Command(
        "profile",
        "[SQL]",
        "what the latest query did, operator by operator; SQL is run for it",
        _analyze,
        completes="sql",
        details="Rows and time of operators; of scans each column's strategy and encoding, vectors pruned "
        "and read, bytes needed and read, and their quotient, the amplification.",
    ),
)
