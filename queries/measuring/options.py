"""Options of commands that measure: where and how BamQuery runs, and where measurements go."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from bamquery.errors import StorageError
from bamquery.queries import arguments


def add_options(parser: argparse.ArgumentParser, repeat: int) -> None:
    """All but strategies; `repeat` is the default."""
    parser.add_argument(
        "--repeat", type=arguments.positive, default=repeat, help=f"timed answers each ({repeat})"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:N: where BamQuery runs (auto)")
    parser.add_argument("--zone-maps", choices=("on", "off"), default="on", help="(on)")
    parser.add_argument("--reader", choices=("auto", "mapped", "direct"), default="auto", help="(auto)")
    parser.add_argument("--block-size", type=arguments.positive, default=512, help="in bytes (512)")
    parser.add_argument("--threads", type=arguments.positive, help="(all cores)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all measurements")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="write a picture (.png, .svg, .pdf)")


def settings_of(options: argparse.Namespace) -> dict[str, object]:
    """The connection's settings that the options ask for."""
    return {
        "device": options.device,
        "zone_maps": options.zone_maps == "on",
        "reader": options.reader,
        "block_size": options.block_size,
        "threads": options.threads,
    }


def write_measurements(measurements: Mapping[str, object], path: Path | None) -> None:
    """As JSON, where a file was named.

    Raises:
        StorageError: it cannot be written.
    """
    if path is None:
        return
    try:
        path.write_text(json.dumps(measurements, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write the measurements: {error.strerror}", path) from error
