"""`bamquery taxi timeline`: what the GPU and its host did while one question was answered."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from bamquery.errors import BamQueryError, StorageError
from bamquery.queries.plot import pictures, save
from bamquery.queries.questions import NAMES, question

if TYPE_CHECKING:
    from bamquery.driver.gpu.trace import Span

_WARM: Final = 3
"""Answers before the one that is traced: kernels are compiled then, and files pinned."""
_KINDS: Final = MappingProxyType(
    {
        "loads the filter column": ("#5b7db1", ("scan_load", "copy to the GPU")),
        "compares checksums": ("#f2b705", ("scan_crc",)),
        "prunes, compares, lists rows and blocks": (
            "#b04a5a",
            ("scan_filter", "scan_offsets", "scan_p", "scan_d", "scan_list", "scan_count", "scan_gather"),
        ),
        "fetches blocks": ("#0b6e4f", ("scan_fetch",)),
        "other": ("#9a9a9a", ("",)),
    }
)
"""What a span is, by its colour and how its kernel's name begins."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options, and what to do with them."""
    parser.description = (
        "Answer one question on a GPU and draw when its streams and its host did what. Tracing costs a "
        "little time; `bamquery taxi run` measures without."
    )
    parser.add_argument("database", metavar="DB", type=Path, help="the database's folder")
    parser.add_argument("--table", default="generated", help="(generated)")
    parser.add_argument("--query", choices=NAMES, default="q5", help="(q5)")
    parser.add_argument("--device", default="cuda:0", help="cuda:N (cuda:0)")
    parser.add_argument("--zone-maps", choices=("on", "off"), default="on", help="(on)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all spans, in milliseconds")
    parser.add_argument("--plot", metavar="FILE", type=Path, required=True, help="(.png, .svg, .pdf)")
    parser.set_defaults(action=_run)


def _run(options: argparse.Namespace) -> int:
    import bamquery  # noqa: PLC0415
    from bamquery.driver.gpu.trace import trace_calls  # noqa: PLC0415

    kind, _, ordinal = options.device.partition(":")
    if kind != "cuda":
        raise BamQueryError(f"a timeline is drawn of a GPU's streams, and {options.device} has none")
    sql = question(options.query).sql(options.table)
    with bamquery.connect(
        options.database, device=options.device, zone_maps=options.zone_maps == "on", gpu_cache_limit=0
    ) as con:
        for _ in range(_WARM):
            con.sql(sql).to_arrow()
        # Opened: what it needs is there.
        from bamquery.engine.cuda.session import open_session  # noqa: PLC0415

        session = open_session(int(ordinal or 0))
        with trace_calls(session.gpu.cuda) as trace:
            with trace.span("query"):
                con.sql(sql).to_arrow()
            spans = trace.spans()
    if options.json is not None:
        text = json.dumps(json_of(spans, options.command_line), indent=1) + "\n"
        try:
            options.json.write_text(text, encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write the timeline: {error.strerror}", options.json) from error
    draw(spans, f"{options.query.upper()}, zone maps {options.zone_maps}", options.plot)
    return 0


def json_of(spans: Sequence[Span], command: str) -> dict[str, Any]:
    """All spans with the command line, times in milliseconds since the query began."""
    start = _query(spans).begin
    return {
        "command": command,
        "spans": [
            {
                "lane": span.lane,
                "name": span.name,
                "begin": round(1e3 * (span.begin - start), 4),
                "end": round(1e3 * (span.end - start), 4),
            }
            for span in spans
        ],
    }


def draw(spans: Sequence[Span], title: str, path: Path) -> None:
    """One row for the host's calls and one for each stream.

    Raises:
        BamQueryError: matplotlib is not installed.
        StorageError: the picture cannot be written.
    """
    query = _query(spans)
    lanes = ["host", *sorted({span.lane for span in spans} - {"host"})]
    with pictures() as pyplot:
        figure, axes = pyplot.subplots(figsize=(12, 0.8 + 0.55 * len(lanes)), layout="constrained")
        seen = set()
        for span in spans:
            if span is query:
                continue
            what, colour = kind_of(span)
            axes.barh(
                lanes.index(span.lane),
                1e3 * (span.end - span.begin),
                left=1e3 * (span.begin - query.begin),
                height=0.7,
                color=colour,
                linewidth=0,
                label=None if what in seen else what,
            )
            seen.add(what)
        axes.set_yticks(range(len(lanes)), ["calls of the host", *lanes[1:]])
        axes.invert_yaxis()
        axes.set_xlim(0, 1e3 * (query.end - query.begin))
        axes.set_xlabel("ms since the statement was given")
        axes.set_title(title, loc="left")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.35), ncols=len(_KINDS), frameon=False)
        save(figure, path)


def kind_of(span: Span) -> tuple[str, str]:
    """What a span is, and its colour."""
    name = span.name.removeprefix("launch ")
    if span.lane == "host":
        return "other", "#9a9a9a"
    return next((kind, colour) for kind, (colour, starts) in _KINDS.items() if name.startswith(starts))


def _query(spans: Sequence[Span]) -> Span:
    return next(span for span in spans if span.name == "query")
