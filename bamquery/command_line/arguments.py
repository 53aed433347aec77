"""The arguments of `bamquery [DB]`: what they are, and what is said where they make no sense."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from bamquery import __version__
from bamquery.output.display_options import (
    DEFAULT_MAX_ROWS,
    FORMATS,
    HEADER_FORMATS,
    NULL_FORMATS,
    PAGED_FORMATS,
    WIDTH_FORMATS,
    DisplayOptions,
)
from bamquery.text.identifiers import nearest, suggestion
from bamquery.text.setting_option import add_setting_option
from bamquery.text.terminal import escape_lines

STANDARD_INPUT: Final = "-"
_HELP_WIDTH: Final = 80
_DESCRIPTION: Final = """\
Run SQL against a database folder and print the answers.

  bamquery trips.bq -c "SELECT count(*) FROM trips"
  bamquery trips.bq -f report.sql --format csv --output report.csv
  bamquery trips.bq < load.sql
"""
_EPILOG: Final = """\
other commands:
  bamquery dump DB [TABLE...]   write tables and views as SQL
  bamquery export DB TABLE FILE write a table as a Parquet or Arrow file
  bamquery columns DB TABLE     say what each column takes, and how it is stored
  bamquery check DB             read everything back and compare checksums
  bamquery report DB SQL        run a query, write a page of what it did
  bamquery taxi ...             load or make taxi trips, run and draw Q1 to Q5
  bamquery serve DB ...         serve a database to Arrow Flight SQL clients
  bamquery bench ...            measure loading, queries, queues and caches
  bamquery doctor [PATH]        say what this machine has and lacks
  bamquery nvme ...             list NVMe drives, hand them over, test them

A database that is called like one of them is opened as ./taxi.

exit status: 0 done, 1 a statement failed, 2 wrong arguments, 130 Ctrl-C, 141
whoever read the output has gone, 128 and its number another signal
"""


@dataclass(frozen=True, slots=True)
class Script:
    """Statements to run: the text of a `-c`, or a file of a `-f`."""

    text: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What `bamquery [DB]` was asked for.

    Attributes:
        database: the folder, or `:memory:`.
        scripts: what to run, in this order; empty is standard input.
        display: how to show answers.
        output: the file to write them to, or None.
        settings: by name, as text.
        keep_history: whether the shell writes down what is typed.
    """

    database: str
    scripts: tuple[Script, ...]
    display: DisplayOptions
    output: str | None
    settings: dict[str, str]
    keep_history: bool


class Parser(argparse.ArgumentParser):
    """Says in a line what is wrong, and what may have been meant."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        self.exit(2, f"{self.prog}: {escape_lines(message)}\nSee {self.prog} --help\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but an option that there is not comes with the nearest one that there is."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            first = unknown[0]
            if first.startswith("-") and len(first) > 1:
                name = first.partition("=")[0]
                options = [option for option in self._option_string_actions if option.startswith("--")]
                self.error(f"there is no option {name}.{suggestion(name, options)}")
            self.error(f"{first!r} is one argument too many")
        return found


def parse_arguments(arguments: Sequence[str], subcommands: Sequence[str]) -> Arguments:
    """What was asked for; exits with a message where it makes no sense.

    Args:
        arguments: without the command's own name.
        subcommands: names that a database may have been mistaken for.
    """
    parser = _parser()
    _check_subcommand(parser, arguments, subcommands)
    options = parser.parse_args(arguments)
    settings = dict(options.settings)
    if options.device is not None:
        settings["device"] = options.device
    scripts = tuple(options.scripts or ())
    if sum(script.path == STANDARD_INPUT for script in scripts) > 1:
        parser.error("-f - is standard input, which can be read once")
    display = _display(parser, options)
    return Arguments(options.database, scripts, display, options.output, settings, options.keep_history)


def parser_error(message: str) -> NoReturn:
    """Exit as for wrong arguments."""
    _parser().error(message)


def _check_subcommand(parser: Parser, arguments: Sequence[str], subcommands: Sequence[str]) -> None:
    """Refuse a first word that is nearly a subcommand, where it is no database and no SQL is given."""
    if not arguments or arguments[0].startswith("-") or not arguments[0].isidentifier():
        return
    word = arguments[0]
    if Path(word).exists() or any(argument.startswith(("-c", "-f", "--file")) for argument in arguments):
        return
    meant = nearest(word, subcommands)
    if meant is not None:
        parser.error(
            f'there is no command and no database "{word}". Did you mean "{meant}"? '
            f"(./{word} is a database of that name)"
        )


def _display(parser: Parser, options: argparse.Namespace) -> DisplayOptions:
    """How to show answers; flags that the format would not look at are refused, not passed over."""
    meant_for = {
        "--no-header": (options.no_header or None, HEADER_FORMATS),
        "--null-value": (options.null_value, NULL_FORMATS),
        "--width": (options.width, WIDTH_FORMATS),
        "--max-rows": (options.max_rows, PAGED_FORMATS),
        "--table": (options.table, frozenset({"insert"})),
    }
    for flag, (value, formats) in meant_for.items():
        if value is not None and options.format not in formats:
            names = ", ".join(name for name in FORMATS if name in formats)
            parser.error(f"{flag} says nothing about {options.format}; it is for {names}")
    return DisplayOptions(
        format=options.format,
        headers=not options.no_header,
        null_value=options.null_value,
        width=options.width,
        max_rows=options.max_rows,
        table_name="table" if options.table is None else options.table,
    )


def _parser() -> Parser:
    parser = Parser(
        prog="bamquery",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=22, width=_HELP_WIDTH
        ),
        usage="bamquery [DB] [-c SQL | -f FILE]... [option]...",
        allow_abbrev=False,
    )
    parser.add_argument(
        "database",
        metavar="DB",
        nargs="?",
        default=":memory:",
        help="the database's folder; without it a temporary one",
    )
    run = parser.add_argument_group("what to run (where nothing is said: a shell, or standard input)")
    run.add_argument(
        "-c",
        metavar="SQL",
        dest="scripts",
        action="append",
        type=lambda text: Script(text=text),
        help="statements, separated by semicolons; may be given again",
    )
    run.add_argument(
        "-f",
        "--file",
        metavar="FILE",
        dest="scripts",
        action="append",
        type=lambda path: Script(path=path),
        help="a file of statements, - for standard input; may be given again, and is run "
        "in its order with -c",
    )
    answers = parser.add_argument_group("answers")
    answers.add_argument(
        "--format",
        metavar="FORMAT",
        type=_format,
        default="table",
        help=f"{', '.join(FORMATS)} (default: table)",
    )
    answers.add_argument("--output", metavar="FILE", help="where answers go instead of standard output")
    answers.add_argument("--no-header", action="store_true", help="leave names of columns out")
    answers.add_argument("--null-value", metavar="TEXT", help="what is written for NULL")
    answers.add_argument(
        "--width",
        metavar="N",
        type=_count,
        help="columns of the terminal that table and box may take, 0 for any number "
        "(default: the terminal's, or 120 for table and any number for box)",
    )
    answers.add_argument(
        "--max-rows",
        metavar="N",
        type=_count,
        help=f"rows that table, box and line show, 0 for all (default: {DEFAULT_MAX_ROWS} for table)",
    )
    answers.add_argument("--table", metavar="NAME", help="the table that insert inserts into")
    others = parser.add_argument_group("settings")
    others.add_argument("--device", metavar="DEVICE", help="auto, cpu or cuda:0 (default: auto)")
    add_setting_option(others.add_argument, "a setting, such as memory_limit=2GiB; may be given again")
    others.add_argument(
        "--no-history",
        dest="keep_history",
        action="store_false",
        help="do not write down what is typed into the shell",
    )
    others.add_argument("--version", action="version", version=f"bamquery {__version__}")
    return parser


def _format(text: str) -> str:
    if text not in FORMATS:
        raise argparse.ArgumentTypeError(
            f'there is no format "{text}".{suggestion(text, FORMATS)} It takes {", ".join(FORMATS)}'
        )
    return text


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise argparse.ArgumentTypeError(f"it takes a whole number from 0 on, not {text!r}")
    return int(text)
