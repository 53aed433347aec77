"""`bamquery bench formats`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bamquery.errors import BamQueryError, StorageError
from bamquery.queries import arguments
from bamquery.queries.formats.systems.registry import FORMATS, OURS, require_format
from bamquery.queries.measuring.options import write_measurements

_OK: Final = 0
_WRONG: Final = 1


def main(argv: Sequence[str]) -> int:
    """Run it; 1 if an answer is wrong or a format fails."""
    options = _parser().parse_args(list(argv))
    if options.job is not None:
        from bamquery.queries.formats.worker import Job, run_job  # noqa: PLC0415

        sys.stdout.write(f"\n{run_job(Job(**json.loads(options.job)))}\n")
        return _OK
    command = shlex.join(["bamquery", "bench", "formats", *argv])
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        return _run(options, options.folder, command)
    with tempfile.TemporaryDirectory(prefix="bamquery-bench-") as folder:
        return _run(options, Path(folder), command)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bamquery bench formats",
        description="Keep the same trips in BamQuery's tables and in other formats; compare bytes on disk, "
        "rows taken by their numbers and Q5, warm and cold, each in processes of its own, in turns. Every "
        "answer is compared with pyarrow's over the rows themselves. Exit status 1 if one is wrong or a "
        "format fails.",
    )
    parser.add_argument(
        "--against",
        type=arguments.names,
        help=f"of {','.join(name for name in FORMATS if name not in OURS)} (those that are installed)",
    )
    parser.add_argument("--folder", type=Path, help="where the files are kept for later runs (nowhere)")
    parser.add_argument("--rows", type=arguments.count, default=10_000_000, help="generated trips (10M)")
    parser.add_argument(
        "--data", metavar="PATH", type=Path, help="real trips instead, as `bamquery export` writes them"
    )
    parser.add_argument("--take", type=arguments.positive, default=10_000, help="rows to take (10,000)")
    parser.add_argument("--rounds", type=arguments.positive, default=5, help="turns of each format (5)")
    parser.add_argument("--repeat", type=arguments.positive, default=5, help="warm answers a turn (5)")
    parser.add_argument("--threads", type=arguments.positive, default=arguments.cores(), help="(all cores)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all measurements")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="also write the table there")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    return parser


def _run(options: argparse.Namespace, folder: Path, command: str) -> int:
    from rich.console import Console  # noqa: PLC0415

    from bamquery.queries.formats.measure import Comparison  # noqa: PLC0415
    from bamquery.queries.formats.report import (  # noqa: PLC0415
        complaints,
        json_of,
        markdown_of,
        table_of,
    )
    from bamquery.queries.measuring.machine import describe_machine  # noqa: PLC0415

    console = Console(highlight=False)

    def tell(line: str) -> None:
        console.print(line, style="dim", soft_wrap=True, markup=False)

    names = _chosen(options.against, tell)
    own, source = _rows(options, folder, tell)
    comparison = Comparison(own, source, threads=options.threads, take=options.take, tell=tell)
    results = comparison.run(names, options.rounds, options.repeat)
    console.print(table_of(results))
    about: dict[str, Any] = {
        "command": command,
        "machine": describe_machine(folder),
        "rows": comparison.rows,
        "taken": comparison.taken,
        "data": "generated" if options.data is None else str(options.data.name),
        "threads": options.threads,
        "rounds": options.rounds,
        "repeat": options.repeat,
        "cold": "only a small copy was asked before; fsync and posix_fadvise(DONTNEED) on the files",
    }
    write_measurements(json_of(results, about), options.json)
    if options.markdown is not None:
        try:
            options.markdown.write_text(markdown_of(results), encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write the table: {error.strerror}", options.markdown) from error
    return _WRONG if complaints(results) else _OK


def _chosen(against: Sequence[str] | None, tell: Any) -> list[str]:
    """Our tables and the formats to compare with; without names, those that can be.

    Raises:
        BamQueryError: a format that was named is not there or not installed.
    """
    names = list(OURS)
    for name in [name for name in FORMATS if name not in OURS] if against is None else against:
        try:
            require_format(name)
        except BamQueryError as error:
            if against is not None:
                raise
            tell(f"left out: {error}")
            continue
        names.append(name)
    return list(dict.fromkeys(names))


def _rows(options: argparse.Namespace, folder: Path, tell: Any) -> tuple[Path, Path]:
    """The folder of the formats' files, and the Arrow file of the rows."""
    from bamquery.queries.formats.source import copy_rows, generate_rows  # noqa: PLC0415

    own = folder / (f"generated-{options.rows}" if options.data is None else f"data-{options.data.stem}")
    own.mkdir(exist_ok=True)
    source = own / "rows.arrow"
    if not source.exists():
        partial = own / "rows.partial"
        if options.data is None:
            tell(f"making {options.rows:,} trips")
            generate_rows(partial, options.rows, options.threads)
        else:
            tell(f"copying {options.data}")
            copy_rows(partial, options.data)
        partial.rename(source)
    return own, source
