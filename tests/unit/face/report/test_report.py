"""`bamquery report`: what the page says, and that nothing in it is foreign."""

from __future__ import annotations

import html.parser
import io
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.command_line.main import main
from bamquery.engine.profiling.vector_map import FragmentVectors, VectorState
from bamquery.report.vector_strip import CELLS, LABELS, cell_counts, describe_states, strip

VECTOR = 1024


class Parsed(html.parser.HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "db"
    rows = 6 * VECTOR
    with bamquery.connect(path) as con:
        con.load("t", pa.table({"x": range(rows), "<b>y": [f"<script>{n}" for n in range(rows)]}))
        con.load("t", pa.table({"x": [-1], "<b>y": ["\x1b[31m\x00\ud7ff"]}), if_exists="append")
    return path


def report(database: Path, sql: str, *options: str, out: Path) -> Parsed:
    assert main(["report", str(database), sql, "-o", str(out), *options]) == 0
    return Parsed(out.read_text("utf-8"))


def test_what_a_page_says(database, tmp_path, capsys):
    sql = f'SELECT x, "<b>y" FROM t WHERE x < {VECTOR} AND x % 500 = 1 ORDER BY x'
    options = ("--set", "strategy=blocks", "--title", "Three & <four>")
    page = report(database, sql, *options, out=tmp_path / "r.html")
    assert "3 rows, " in capsys.readouterr().out
    assert "Three & <four>" in page.text
    assert "bytes read" in page.text
    assert "Scan t" in page.text
    assert "x (filter, output) – 2 streamed, 5 pruned of 7 vectors" in page.text
    assert "<b>y (output) – 1 fetched by block, 1 not needed, 5 pruned of 7 vectors" in page.text
    strips = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert [strip["data-vectors"] for strip in strips] == ["7", "7"]


def test_foreign_text_is_text(database, tmp_path):
    page = report(database, 'SELECT "<b>y" FROM t WHERE x = -1 OR x = 7', out=tmp_path / "r.html")
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "b y", "img", "iframe", "link"}
    assert "<script>7" in page.text
    assert r"\x1b[31m\x00" in page.text
    raw = (tmp_path / "r.html").read_bytes()
    assert b"\x1b" not in raw
    assert b"\x00" not in raw


def test_a_page_asks_for_nothing(database, tmp_path):
    page = report(database, "SELECT count(*) FROM t WHERE x > 5", out=tmp_path / "r.html")
    for tag, attributes in page.tags:
        assert not {"src", "href", "srcset", "action"} & attributes.keys(), tag
    assert not re.search(r"url\(|@import|https?:", (tmp_path / "r.html").read_text())
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_a_query_without_tables_and_one_without_rows(database, tmp_path):
    page = report(database, "SELECT 1 AS one", out=tmp_path / "a.html")
    assert "Bytes by column" not in page.text
    assert "1 row" in page.text
    page = report(database, "SELECT x FROM t WHERE x < -5", out=tmp_path / "b.html")
    assert "0 rows" in page.text
    assert "x (filter, output) – 7 pruned of 7 vectors" in page.text


def test_long_answers_are_cut_and_counted(database, tmp_path):
    page = report(database, "SELECT x FROM t", out=tmp_path / "r.html")
    assert "the first 20 of 6,145 rows" in page.text


def test_statements_before_the_query(tmp_path):
    with bamquery.connect(tmp_path / "db"):
        pass
    sql = "CREATE TABLE n AS SELECT range AS i FROM range(5000); SET zone_maps = off; SELECT sum(i) FROM n"
    page = report(tmp_path / "db", sql, out=tmp_path / "r.html")
    assert "12497500" in page.text
    assert "zone maps off" in page.text


@pytest.mark.parametrize("sql", ["CREATE TABLE n (i INTEGER)", "EXPLAIN SELECT 1", "SET zone_maps = off"])
def test_what_is_no_query(tmp_path, capsys, sql):
    with bamquery.connect(tmp_path / "db"):
        pass
    assert main(["report", str(tmp_path / "db"), sql, "-o", str(tmp_path / "r.html")]) == 1
    assert "a report is of a query" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


def test_a_failing_query_leaves_an_older_page(database, tmp_path, capsys):
    out = tmp_path / "r.html"
    out.write_text("older")
    assert main(["report", str(database), "SELECT CAST('a' AS INTEGER) + x FROM t", "-o", str(out)]) == 1
    assert out.read_text() == "older"
    assert "bamquery: " in capsys.readouterr().err


def test_a_database_that_is_not_there_is_not_made(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["report", str(tmp_path / "none"), "SELECT 1"])
    assert stop.value.code == 2
    assert not (tmp_path / "none").exists()


def test_standard_input_and_output(database, monkeypatch, capfdbinary):
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT min(x) FROM t"))
    assert main(["report", str(database), "-", "-o", "-"]) == 0
    assert capfdbinary.readouterr().out.startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize("count", [0, 1, 7, CELLS - 1, CELLS, CELLS + 1, 10 * CELLS + 3, 100_000])
def test_cells_lose_no_vector(count):
    states = np.random.default_rng(count).integers(0, len(VectorState), count).astype(np.uint8)
    counts = cell_counts(states)
    assert len(counts) == min(count, CELLS)
    assert counts.sum() == count
    assert counts.sum(axis=0).tolist() == np.bincount(states, minlength=len(VectorState)).tolist()
    if count:
        assert counts.sum(axis=1).min() >= 1
        assert counts.sum(axis=1).max() - counts.sum(axis=1).min() <= 1
    said = describe_states(states)
    for state in VectorState:
        assert f"{(states == state).sum():,} {LABELS[state][0]}" in said or not (states == state).any()


def test_a_strip_covers_its_whole_area():
    rng = np.random.default_rng(5)
    states = rng.integers(0, len(VectorState), 5000).astype(np.uint8)
    picture = strip("x", states, [FragmentVectors("a", 3000, 1), FragmentVectors("b", 2000, 1)])
    area = sum(
        int(width) * float(height)
        for path in picture.iter("path")
        for width, height in re.findall(r"h(\d+)v([\d.]+)", path.attrib["d"])
    )
    assert abs(area - CELLS * 28) < 0.01 * CELLS * 28
    assert [line.attrib["x1"] for line in picture.iter("line")] == ["288.0"]
