"""`bamquery taxi selectivity`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from bamquery.errors import StorageError
from bamquery.queries import arguments

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
    parser.add_argument("--repeat", type=arguments.positive, default=3, help="timed answers each (3)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:N (auto)")
    parser.add_argument("--zone-maps", choices=("on", "off"), default="on", help="(on)")
    parser.add_argument("--reader", choices=("auto", "mapped", "direct"), default="auto", help="(auto)")
    parser.add_argument("--block-size", type=arguments.positive, default=512, help="in bytes (512)")
    parser.add_argument("--threads", type=arguments.positive, help="(all cores)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all measurements")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="write a picture (.png, .svg, .pdf)")
    parser.set_defaults(action=_run)


def _run(options: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415

    from bamquery.queries.selectivity.measure import SHARES, STRATEGIES, Plan, measure  # noqa: PLC0415
    from bamquery.queries.selectivity.plot import draw  # noqa: PLC0415
    from bamquery.queries.selectivity.report import json_of, tables_of  # noqa: PLC0415

    settings: dict[str, object] = {
        "device": options.device,
        "zone_maps": options.zone_maps == "on",
        "reader": options.reader,
        "block_size": options.block_size,
        "threads": options.threads,
    }
    result = measure(
        Plan(
            database=options.database,
            tables=options.tables,
            shares=options.shares or SHARES,
            strategies=options.strategies or STRATEGIES,
            repeat=options.repeat,
            settings=settings,
        )
    )
    Console().print(tables_of(result))
    measurements = json_of(result, options.command_line)
    if options.json is not None:
        text = json.dumps(measurements, indent=2) + "\n"
        try:
            options.json.write_text(text, encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write the measurements: {error.strerror}", options.json) from error
    if options.plot is not None:
        draw(measurements, options.plot)
    return _OK if result.right else _WRONG
