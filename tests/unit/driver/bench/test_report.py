import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bamquery.driver.bench.plot import draw
from bamquery.driver.bench.report import Report, Run, notes_of, table_of, to_json
from bamquery.driver.bench.workload import BlockWorkload, CacheWorkload, Figures, Latency
from bamquery.errors import BamQueryError, StorageError

GOOD = Figures(
    path="rings",
    operations=11_500_000,
    bytes=11_500_000 * 4096,
    seconds=1.0,
    cpu_seconds=8.0,
    latency=Latency(mean=2500.0, p50=2000, p90=3000, p99=10_000, p999=50_000, max=1_000_000),
    verified=True,
)
BAD = Figures(
    path="mapped",
    operations=0,
    bytes=0,
    seconds=0.0,
    errors=3,
    verified=False,
    notes=("first error: out of range",),
)


def text_of(report: Report) -> str:
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(table_of(report))
    return capture.get()


def test_figures_derive_rates() -> None:
    assert GOOD.iops == 11.5e6
    assert GOOD.gigabytes_per_second == pytest.approx(47.104)
    assert GOOD.cpu_cores == 8.0
    assert GOOD.cores_per_gigabyte == pytest.approx(8 / 47.104)
    assert GOOD.right
    assert not BAD.right
    assert (BAD.iops, BAD.gigabytes_per_second, BAD.cpu_cores, BAD.cores_per_gigabyte) == (0, 0, None, None)


def test_tables_show_what_was_measured() -> None:
    text = text_of(Report("block", "", "pairs", [Run(BlockWorkload(), [GOOD, BAD], "132")]))
    assert "11.5 MIOPS" in text
    assert "47.1" in text
    assert "132" in text
    assert "verified" in text
    assert "3 failed" in text
    wrong = text_of(Report("block", "", "", [Run(BlockWorkload(), [replace(GOOD, verified=False)])]))
    assert "WRONG" in wrong
    assert "hits" not in text


def test_caches_show_hits() -> None:
    cached = Figures(path="cache", operations=1, bytes=1, seconds=1.0, counters={"hit_ratio": 0.25})
    assert "25.0 %" in text_of(Report("cache", "", "", [Run(CacheWorkload(), [cached])]))


def test_notes_come_once() -> None:
    report = Report("block", "", "", [Run(BlockWorkload(), [BAD]), Run(BlockWorkload(), [BAD])])
    assert notes_of(report) == ["mapped: first error: out of range"]


def test_json_can_be_read_back() -> None:
    report = Report("block", "bamquery bench block", "", [Run(BlockWorkload(), [GOOD, BAD])], True)
    found = json.loads(json.dumps(to_json(report)))
    assert (found["right"], found["interrupted"]) == (False, True)
    good, bad = found["runs"][0]["figures"]
    assert good["latency_ns"]["p99"] == 10_000
    assert bad["latency_ns"] is None
    assert found["runs"][0]["workload"]["pattern"] == "random"
    assert "T" in found["date"]


def test_pictures(tmp_path: Path) -> None:
    runs = [Run(BlockWorkload(), [GOOD, BAD], text) for text in ("1", "2", "4")]
    report = Report("block", "", "pairs", runs)
    draw(report, tmp_path / "picture.svg")
    draw(report, tmp_path / "again.svg")
    assert (tmp_path / "picture.svg").read_bytes() == (tmp_path / "again.svg").read_bytes()
    with pytest.raises(StorageError, match="cannot write the picture"):
        draw(report, tmp_path / "no" / "picture.png")


def test_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", absent)
    with pytest.raises(BamQueryError, match=r"bamquery\[bench\]"):
        draw(Report("block", "", "", []), Path("picture.png"))
