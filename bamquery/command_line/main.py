"""The `bamquery` command: SQL from arguments or standard input, answers in the format asked for."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, Final

from bamquery.command_line.arguments import STANDARD_INPUT, Parser, Script, parse_arguments, parser_error
from bamquery.command_line.interruption import INTERRUPTION, interruptible
from bamquery.errors import BamQueryError, SettingError
from bamquery.text.statement_text import DEFAULT_WIDTH, StatementText
from bamquery.text.terminal import escape_lines, has_colour, terminal_width

OK: Final = 0
FAILED: Final = 1
"""A statement failed, or `check` found damage."""
USAGE: Final = 2
"""The arguments make no sense; argparse exits with the same."""
SIGNALLED: Final = 128
"""And a signal's number: ended by SIGTERM or SIGHUP, as shells report it."""
INTERRUPTED: Final = 130
"""Ctrl-C: 128 and the signal's number, as shells report it."""
BROKEN_PIPE: Final = 141
"""Whoever read the output has gone: as if killed by SIGPIPE, without a word."""
_MOMENT: Final = 0.02
"""Seconds until a signal that was lost is handled again."""


def run() -> None:
    """Entry point of the `bamquery` command."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # not where nohup had it ignored
            signal.signal(number, _end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, INTERRUPTION.handle)
    sys.unraisablehook = _raise_again
    status = main(sys.argv[1:])
    if status == INTERRUPTED:
        # All files are closed. Python's own end would wait for calls that the query has left behind, and
        # where Ctrl-C came in the middle of an import it ends by a signal instead of this status.
        _exit_without_cleanup(status)
    sys.exit(status)


def main(arguments: Sequence[str]) -> int:
    """Run the command with these arguments; returns the exit status."""
    if sys.stdout is None:  # as Python has it where the descriptor is closed
        _complain("standard output is closed")
        return FAILED
    try:
        subcommand = _SUBCOMMANDS.get(arguments[0]) if arguments else None
        if subcommand:
            collect_garbage()
        status = subcommand(arguments[1:]) if subcommand else query(arguments)
        sys.stdout.flush()
        return status
    except (Exception, KeyboardInterrupt) as error:
        return _failure(error)


def _failure(error: BaseException) -> int:
    """Say what ended the command; returns the exit status.

    Raises:
        Exception: the error itself, which is a fault of the program.
    """
    # After Ctrl-C whatever else is raised follows from it: an import that was broken off, a table half read.
    if isinstance(error, KeyboardInterrupt) or INTERRUPTION.noted:
        _complain("interrupted")
        return INTERRUPTED
    if isinstance(error, BamQueryError):
        _complain(error)
        return USAGE if isinstance(error, SettingError) else FAILED
    if isinstance(error, BrokenPipeError):
        _give_up_output()
        return BROKEN_PIPE
    if isinstance(error, OSError):  # of standard output: those of databases and files are BamQueryErrors
        _give_up_output()
        _complain(f"cannot write the output: {error.strerror or error}")
        return FAILED
    raise error


def collect_garbage() -> None:
    """From now on, where the start of the command put it off; what there is by now will stay."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def query(arguments: Sequence[str]) -> int:
    """`bamquery [DB] [-c SQL] [-f FILE]`."""
    asked = parse_arguments(arguments, list(_SUBCOMMANDS))
    if not asked.scripts and sys.stdin is None:
        parser_error('standard input is closed: pass SQL with -c "..."')
    settings: dict[str, Any] = dict(asked.settings)
    if not asked.scripts and sys.stdin.isatty():
        if asked.output is not None:
            parser_error("--output needs -c, -f or standard input; in the shell, .output FILE does it")
        from bamquery.shell.start import run_shell  # noqa: PLC0415 (not for scripts)

        collect_garbage()
        # There Ctrl-C ends a statement, not the command.
        if signal.getsignal(signal.SIGINT) == INTERRUPTION.handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run_shell(asked.database, settings, asked.display, keep_history=asked.keep_history)
    # All of them before the first is run: a file that is not there should not stop work halfway.
    texts = [_text(script) for script in asked.scripts or [Script(path=STANDARD_INPUT)]]
    # Only now: --help and mistakes in arguments should not wait for pyarrow.
    from bamquery.connection.connection import open_connection  # noqa: PLC0415
    from bamquery.output.writers import open_output  # noqa: PLC0415

    collect_garbage()
    with (
        interruptible(),
        open_connection(asked.database, None, settings) as connection,
        open_output(asked.display, asked.output) as output,
    ):
        if connection.created and sys.stderr is not None and sys.stderr.isatty():
            _complain(f"made a new database: {asked.database}")
        for text in texts:
            started = time.perf_counter()
            for relation in connection.statements(text):
                output.write(relation, started)
                started = time.perf_counter()
    return OK


def _text(script: Script) -> str:
    """The statements; exits as for wrong arguments where there is no such file.

    Raises:
        BamQueryError: the file is not text in UTF-8.
    """
    if not script.path:
        return script.text
    name = "standard input" if script.path == STANDARD_INPUT else script.path
    try:
        # Not as Python reads text: ends of lines within strings are data.
        data = sys.stdin.buffer.read() if script.path == STANDARD_INPUT else Path(script.path).read_bytes()
        return StatementText(data.decode(), label="" if script.path == STANDARD_INPUT else script.path)
    except UnicodeDecodeError as error:
        raise BamQueryError(f"{name} is not text in UTF-8: {error}") from None
    except OSError as error:
        parser_error(f"{name} cannot be read: {error.strerror or error}")


def check(arguments: Sequence[str]) -> int:
    """`bamquery check DB`."""
    parser = Parser(prog="bamquery check", description="Read a database back and compare every checksum.")
    parser.add_argument("database", metavar="DB", help="the database's folder")
    options = parser.parse_args(arguments)
    from bamquery.command_line.check import check_database  # noqa: PLC0415

    return OK if check_database(options.database, sys.stdout) else FAILED


def dump(arguments: Sequence[str]) -> int:
    """`bamquery dump DB [TABLE...]`."""
    parser = Parser(
        prog="bamquery dump",
        description="Write tables and views as SQL that makes them again: CREATE TABLE, INSERT, CREATE VIEW.",
    )
    parser.add_argument("database", metavar="DB", help="the database's folder")
    parser.add_argument("names", metavar="TABLE", nargs="*", help="tables and views; without any, all")
    parser.add_argument("--output", metavar="FILE", help="where to write instead of standard output")
    options = parser.parse_args(arguments)
    from bamquery.statements.dump import dump_database  # noqa: PLC0415

    dump_database(options.database, options.names, options.output)
    return OK


def _export(arguments: Sequence[str]) -> int:
    from bamquery.command_line.export import main as export  # noqa: PLC0415

    return export(arguments)


def _columns(arguments: Sequence[str]) -> int:
    from bamquery.command_line.columns import main as columns  # noqa: PLC0415

    return columns(arguments)


def _taxi(arguments: Sequence[str]) -> int:
    from bamquery.queries.command_line import main as taxi  # noqa: PLC0415

    return taxi(list(arguments))


def _bench(arguments: Sequence[str]) -> int:
    parser = Parser(prog="bamquery bench", description="Measure parts of BamQuery.")
    parser.add_argument(
        "what",
        metavar="WHAT",
        choices=[
            "startup",
            "planning",
            "recursion",
            "ingest",
            "packed",
            "sql",
            "formats",
            "spill",
            "memory",
            "packed-scan",
            "block",
            "cache",
            "array",
        ],
        help="startup: imports, a first query, the command; "
        "planning: plans of statements that grow, against DuckDB, or of TPC-H's queries; "
        "recursion: steps of recursive queries, against DuckDB; "
        "ingest: loading against a plain copy; packed: packed columns against plain ones; "
        "sql: queries against DuckDB, polars and cudf-polars; "
        "formats: bytes, rows by number and Q5 against Parquet, DuckDB, Vortex, Lance and ClickHouse; "
        "spill: queries that do not fit in memory; "
        "memory: the most that each operator and way in takes, over memory_limit; "
        "packed-scan: a GPU's kernels over a packed column; "
        "block: reads and writes by queues and other paths; cache: the page cache; "
        "array: elements through it",
    )
    options = parser.parse_args(arguments[:1])
    if options.what == "startup":
        from bamquery.queries.measuring.startup import main as startup  # noqa: PLC0415

        return startup(arguments[1:])
    if options.what == "planning":
        from bamquery.queries.measuring.planning import main as planning  # noqa: PLC0415

        return planning(list(arguments[1:]))
    if options.what == "recursion":
        from bamquery.queries.measuring.recursion import main as recursion  # noqa: PLC0415

        return recursion(list(arguments[1:]))
    if options.what == "ingest":
        from bamquery.storage.ingest.benchmark import main as ingest  # noqa: PLC0415

        return ingest(list(arguments[1:]))
    if options.what == "packed":
        from bamquery.storage.encodings.packed.benchmark import main as packed  # noqa: PLC0415

        return packed(list(arguments[1:]))
    if options.what == "sql":
        from bamquery.queries.speed.command import main as speed  # noqa: PLC0415

        return speed(arguments[1:])
    if options.what == "formats":
        from bamquery.queries.formats.command import main as formats  # noqa: PLC0415

        return formats(arguments[1:])
    if options.what == "spill":
        from bamquery.queries.measuring.spilling import main as spill  # noqa: PLC0415

        return spill(list(arguments[1:]))
    if options.what == "memory":
        from bamquery.queries.memory.command import main as memory  # noqa: PLC0415

        return memory(list(arguments[1:]))
    if options.what == "packed-scan":
        from bamquery.queries.measuring.packed_scan import main as packed_scan  # noqa: PLC0415

        return packed_scan(arguments[1:])
    from bamquery.driver.bench.command_line import main as bench  # noqa: PLC0415

    return bench(options.what, arguments[1:])


def _doctor(arguments: Sequence[str]) -> int:
    from bamquery.driver.doctor.command_line import main as doctor  # noqa: PLC0415

    return doctor(arguments)


def _nvme(arguments: Sequence[str]) -> int:
    from bamquery.driver.nvme.command_line import main as nvme  # noqa: PLC0415
    from bamquery.statement_context.cancellation import use_cancellation_check  # noqa: PLC0415

    with use_cancellation_check(INTERRUPTION.check):  # also where an exception of Ctrl-C was lost
        return nvme(arguments)


def _report(arguments: Sequence[str]) -> int:
    from bamquery.report.report_command import main as report  # noqa: PLC0415

    return report(arguments)


def _serve(arguments: Sequence[str]) -> int:
    from bamquery.flight.serve_command import main as serve  # noqa: PLC0415

    return serve(arguments)


_SUBCOMMANDS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = MappingProxyType(
    {
        "taxi": _taxi,
        "check": check,
        "dump": dump,
        "export": _export,
        "columns": _columns,
        "bench": _bench,
        "doctor": _doctor,
        "nvme": _nvme,
        "report": _report,
        "serve": _serve,
    }
)


def _complain(error: BamQueryError | str) -> None:
    if sys.stderr is None:  # print() would take standard output then
        return
    if isinstance(error, str):
        shown = escape_lines(error)
    else:
        width = terminal_width(sys.stderr, DEFAULT_WIDTH)
        shown = error.render(width, colour=has_colour(None, terminal=sys.stderr.isatty()))
    print(f"bamquery: {shown}", file=sys.stderr)  # noqa: T201


def _exit_without_cleanup(status: int) -> None:
    """Go without Python's own end."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(status)


def _end(number: int, frame: FrameType | None) -> None:
    """A signal to end: by an exception, so that what is temporary is removed on the way."""
    del frame
    raise SystemExit(SIGNALLED + number)


def _raise_again(lost: Any) -> None:
    """A signal that came while Python called a callback or destructor, which swallow what its handler raises.

    Its handler is run once more, a moment later and so somewhere else: in a hook it would be lost, too.
    """
    error = lost.exc_value
    if not isinstance(error, KeyboardInterrupt | SystemExit):
        sys.__unraisablehook__(lost)
        return

    def handle(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise error.with_traceback(None)

    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, _MOMENT)


def _give_up_output() -> None:
    """Python flushes once more at its end: let that go nowhere instead of failing again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
