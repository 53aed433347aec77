"""The picture of a traced query."""

from __future__ import annotations

from pathlib import Path

import pytest

from bamquery.driver.gpu.trace import Span
from bamquery.errors import BamQueryError
from bamquery.queries.command_line import main
from bamquery.queries.timeline import draw, json_of, kind_of

SPANS = [
    Span("host", "query", 0.5, 0.53),
    Span("host", "cuLaunchKernel: launch scan_crc", 0.501, 0.502),
    Span("stream 0", "launch scan_load_vectors", 0.502, 0.51),
    Span("stream 1", "launch scan_crc", 0.51, 0.512),
    Span("stream 1", "launch scan_filter", 0.512, 0.513),
    Span("stream 2", "launch scan_fetch with 64 blocks", 0.513, 0.52),
    Span("stream 2", "clear counters", 0.52, 0.521),
]


def test_kinds() -> None:
    assert [kind_of(span)[0] for span in SPANS[2:]] == [
        "loads the filter column",
        "compares checksums",
        "prunes, compares, lists rows and blocks",
        "fetches blocks",
        "other",
    ]


def test_times_are_since_the_query_began() -> None:
    found = json_of(SPANS, "bamquery taxi timeline")
    assert found["spans"][0] == {"lane": "host", "name": "query", "begin": 0.0, "end": 30.0}
    assert found["spans"][2]["begin"] == pytest.approx(2.0)


def test_the_picture_names_its_lanes(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw(SPANS, "Q5, zone maps on", tmp_path / "timeline.svg")
    text = (tmp_path / "timeline.svg").read_text("utf-8")
    for words in ("Q5, zone maps on", "calls of the host", "stream 2", "fetches blocks"):
        assert words in text


def test_a_cpu_has_no_timeline(tmp_path: Path) -> None:
    with pytest.raises(BamQueryError, match="cpu has none"):
        main(["timeline", str(tmp_path / "db"), "--device", "cpu", "--plot", str(tmp_path / "t.png")])
