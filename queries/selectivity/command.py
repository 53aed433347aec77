"""`bamquery taxi selectivity`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from bamquery.queries import arguments
from bamquery.queries.measuring.options import add_options, settings_of, write_measurements

_OK: Final = 0
_WRONG: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options, and what to do with them."""
    parser.description = (
        "Ask for the mean of Q5's amount over ever more trips of one or more tables, with every strategy; "
        "check every answer. Exit status 1 if one is wrong."
    )
    parser.add_argument("database", metavar="DB", type=Path, help="the database's folder")
    parser.add_argument("--tables", type=arguments.names, default=("generated",), help="(generated)")
    parser.add_argument(
        "--shares", type=arguments.shares, help="of rows that match, such as 0.001,0.1,1 (0.00001 to 1)"
    )
    parser.add_argument(
        "--strategies", type=arguments.names, help="of stream,vectors,blocks,auto (all of them)"
    )
    parser.add_argument(
        "--conditions", type=arguments.names, help="of column,expression,join, that find the trips (column)"
    )
    add_options(parser, repeat=3)
    parser.set_defaults(action=_run)


def _run(options: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415

    from bamquery.queries.selectivity.measure import (  # noqa: PLC0415
        CONDITIONS,
        SHARES,
        STRATEGIES,
        Plan,
        measure,
    )
    from bamquery.queries.selectivity.plot import draw  # noqa: PLC0415
    from bamquery.queries.selectivity.report import json_of, tables_of  # noqa: PLC0415

    result = measure(
        Plan(
            database=options.database,
            tables=options.tables,
            shares=options.shares or SHARES,
            strategies=options.strategies or STRATEGIES,
            conditions=options.conditions or CONDITIONS[:1],
            repeat=options.repeat,
            settings=settings_of(options),
        )
    )
    Console().print(tables_of(result))
    measurements = json_of(result, options.command_line)
    write_measurements(measurements, options.json)
    if options.plot is not None:
        draw(measurements, options.plot)
    return _OK if result.right else _WRONG
