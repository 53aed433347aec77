"""The `bamquery` command: SQL from arguments or standard input, answers in the format asked for."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType, MappingProxyType
from typing import Any, Final

from bamquery import __version__
from bamquery.errors import BamQueryError, SettingError

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

_DESCRIPTION: Final = """\
Run SQL against a database folder and print the answers.

  bamquery trips.bq -c "SELECT count(*) FROM trips"
  bamquery trips.bq --format csv --output tips.csv < tips.sql
"""
_SUBCOMMANDS_HELP: Final = """\
other commands:
  bamquery taxi ...         load or make taxi trips, run and draw Q1 to Q5
  bamquery check DB         read everything back and compare checksums
  bamquery report DB SQL    run a query, write a page of what it did
  bamquery bench ...        measure loading, queries, queues, page cache and array
  bamquery doctor [PATH]    say what this machine has and lacks

A database that is called like one of them is opened as ./taxi.

exit status: 0 done, 1 a statement failed, 2 wrong arguments, 130 Ctrl-C,
128 and its number a signal
"""


def run() -> None:
    """Entry point of the `bamquery` command."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # not where nohup had it ignored
            signal.signal(number, _end)
    sys.unraisablehook = _raise_again
    status = main(sys.argv[1:])
    if status == INTERRUPTED:
        from bamquery.engine.cancellation import calls_left  # noqa: PLC0415

        if calls_left():  # for which the interpreter would wait; all files are closed, and output is flushed
            _leave(status)
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
    except BamQueryError as error:
        _complain(str(error))
        return USAGE if isinstance(error, SettingError) else FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _give_up_output()
        return BROKEN_PIPE
    except OSError as error:  # of standard output: those of databases and files are BamQueryErrors
        _give_up_output()
        _complain(f"cannot write the output: {error.strerror or error}")
        return FAILED


def collect_garbage() -> None:
    """From now on, where the start of the command put it off; what there is by now will stay."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def query(arguments: Sequence[str]) -> int:
    """`bamquery [DB] [-c SQL]`."""
    parser = _parser()
    options = parser.parse_args(arguments)
    settings = dict(_setting(parser, text) for text in options.settings)
    if options.commands is None and sys.stdin is None:
        parser.error('standard input is closed: pass SQL with -c "..."')
    if options.commands is None and sys.stdin.isatty():
        parser.error('there is no interactive shell yet: pass SQL with -c "..." or on standard input')
    texts = options.commands if options.commands is not None else [_standard_input()]
    # Only now: --help and mistakes in arguments should not wait for pyarrow.
    import pyarrow as pa  # noqa: PLC0415

    from bamquery.connection import connect  # noqa: PLC0415
    from bamquery.outputs import open_output  # noqa: PLC0415

    collect_garbage()
    # Arrow's own handler, there while it reads a CSV file, now and then loses a Ctrl-C; Python's does not.
    pa.enable_signal_handlers(False)
    if options.device is not None:
        settings["device"] = options.device
    with (
        connect(options.database, **settings) as connection,
        open_output(options.format, options.output, options.max_rows) as output,
    ):
        for text in texts:
            started = time.perf_counter()
            for relation in connection.statements(text):
                output.write(relation, started)
                started = time.perf_counter()
    return OK


def check(arguments: Sequence[str]) -> int:
    """`bamquery check DB`."""
    parser = argparse.ArgumentParser(
        prog="bamquery check", description="Read a database back and compare every checksum."
    )
    parser.add_argument("database", metavar="DB", help="the database's folder")
    options = parser.parse_args(arguments)
    from bamquery.checking import check_database  # noqa: PLC0415

    return OK if check_database(options.database, sys.stdout) else FAILED


def _taxi(arguments: Sequence[str]) -> int:
    from bamquery.queries.command_line import main as taxi  # noqa: PLC0415

    return taxi(list(arguments))


def _bench(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bamquery bench", description="Measure parts of BamQuery.")
    parser.add_argument(
        "what",
        choices=["ingest", "sql", "spill", "block", "cache", "array"],
        help="ingest: loading against a plain copy; sql: queries against DuckDB; "
        "spill: queries that do not fit in memory; "
        "block: reads and writes by queues and other paths; cache: the page cache; "
        "array: elements through it",
    )
    options = parser.parse_args(arguments[:1])
    if options.what == "ingest":
        from bamquery.storage.ingest.benchmark import main as ingest  # noqa: PLC0415

        return ingest(list(arguments[1:]))
    if options.what == "sql":
        from bamquery.queries.speed.command import main as speed  # noqa: PLC0415

        return speed(arguments[1:])
    if options.what == "spill":
        from bamquery.queries.spilling import main as spill  # noqa: PLC0415

        return spill(list(arguments[1:]))
    from bamquery.driver.bench.command_line import main as bench  # noqa: PLC0415

    return bench(options.what, arguments[1:])


def _doctor(arguments: Sequence[str]) -> int:
    from bamquery.driver.doctor.command_line import main as doctor  # noqa: PLC0415

    return doctor(arguments)


def _report(arguments: Sequence[str]) -> int:
    from bamquery.report.command_line import main as report  # noqa: PLC0415

    return report(arguments)


_SUBCOMMANDS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = MappingProxyType(
    {"taxi": _taxi, "check": check, "bench": _bench, "doctor": _doctor, "report": _report}
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bamquery",
        description=_DESCRIPTION,
        epilog=_SUBCOMMANDS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "database",
        metavar="DB",
        nargs="?",
        default=":memory:",
        help="the database's folder, made if there is none; without it a temporary one",
    )
    parser.add_argument(
        "-c",
        metavar="SQL",
        dest="commands",
        action="append",
        help="statements to run, separated by semicolons; may be given several times",
    )
    parser.add_argument(
        "--format",
        choices=["table", "csv", "json", "markdown", "parquet", "arrow"],
        default="table",
        help="of the answers; arrow is an IPC file with --output and an IPC stream without",
    )
    parser.add_argument("--output", metavar="FILE", help="where answers go instead of standard output")
    parser.add_argument(
        "--max-rows", metavar="N", type=_positive, default=40, help="rows that tables show (default: 40)"
    )
    parser.add_argument("--device", metavar="DEVICE", help="auto, cpu or cuda:0 (default: auto)")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        dest="settings",
        action="append",
        default=[],
        help="a setting, such as memory_limit=2GiB; may be given several times",
    )
    parser.add_argument("--version", action="version", version=f"bamquery {__version__}")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("it takes a whole number from 1 on")
    return int(text)


def _setting(parser: argparse.ArgumentParser, text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        parser.error(f"--set takes name=value, not {text!r}")
    return name.strip(), value.strip()


def _complain(message: str) -> None:
    if sys.stderr is not None:  # print() would take standard output then
        print(f"bamquery: {message}", file=sys.stderr)  # noqa: T201


def _leave(status: int) -> None:
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


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise BamQueryError(f"standard input is not text in UTF-8: {error}") from None
