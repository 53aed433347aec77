"""What a notebook shows of relations, explanations and profiles."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import bamquery
from bamquery.text.html_elements import element
from bamquery.text.notebook_html import fragment


class Page(HTMLParser):
    """Tags and texts, as a browser sees them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def test_rows_types_and_how_many(con):
    relation = con.sql("SELECT 1 AS x, NULL::VARCHAR AS s, TIME '24:00' AS t")
    page = Page(relation._repr_html_())
    assert {"x", "INTEGER", "s", "VARCHAR", "NULL", "24:00:00", "1 row"} <= set(page.texts)
    bundle = relation._repr_mimebundle_()
    assert bundle["text/plain"] == repr(relation)
    assert "1 row" in bundle["text/html"]


def test_values_and_names_are_no_markup(con):
    bad = "<script>alert('x')</script>&amp;\x1b[31m"
    con.load("t", pa.table({f"<b>{bad}": [bad]}))
    for html in (
        con.table("t")._repr_html_(),
        con.table("t").explain(analyze=True)._repr_html_(),
        con.sql("SELECT '<img src=x onerror=alert(1)>' AS x FROM t").explain()._repr_html_(),
    ):
        assert {"script", "img"}.isdisjoint(Page(html).tags)
        assert "\x1b" not in html
    assert bad.replace("\x1b", "\\x1b") in Page(con.table("t")._repr_html_()).texts


def test_how_many_rows_as_far_as_known(filled):
    with bamquery.connect(filled) as con:
        assert "the first 20 of 30,000 rows" in con.table("numbers")._repr_html_()
        filtered = con.sql("SELECT position FROM numbers WHERE noise < 0.5")
        assert "the first 20 rows; there are more" in filtered._repr_html_()
        with filtered.run() as result:
            next(result)
        assert "the first 20 rows; there are more" in filtered._repr_html_()
        rows = filtered.to_arrow().num_rows
        assert f"the first 20 of {rows:,} rows" in filtered._repr_html_()
        assert "20 rows" in filtered.limit(20)._repr_html_()


def test_the_profile_is_folded(filled):
    with bamquery.connect(filled) as con:
        relation = con.sql("SELECT count(*) FROM numbers WHERE noise < 0.5")
        html = relation._repr_html_()
        assert "Profile of these rows" in html
        assert "Profile of latest run" not in html
        assert not relation.has_run
        relation.fetchall()
        html = relation._repr_html_()
        assert "Profile of latest run" in html
        assert "Scan numbers" in html
        assert html.count("<details>") == 2  # closed; those within are open


def test_what_cannot_be_shown_is_an_error(con):
    relation = con.sql("SELECT CAST(s AS INTEGER) AS n FROM (VALUES ('<x>')) t(s)")
    bundle = relation._repr_mimebundle_()
    assert bundle["text/plain"].startswith("<Relation (n): '<x>' (VARCHAR) cannot be cast")
    assert "&lt;x&gt;" in bundle["text/html"]


def test_explain_is_a_text_and_a_tree(filled):
    with bamquery.connect(filled) as con:
        relation = con.sql("SELECT word, count(*) FROM numbers WHERE rare = 1 GROUP BY word")
        plain = relation.explain()
        measured = relation.explain(analyze=True)
    assert isinstance(plain, str)
    assert "<pre>" in plain._repr_html_()
    page = Page(measured._repr_html_())
    assert page.tags.count("details") == len(list(relation.profile.root.walk()))
    assert {"Aggregate", "Scan numbers", "rare"} <= set(page.texts)
    assert measured.startswith("device cpu, ")
    assert measured == str(relation.profile)

    class Printer:
        def text(self, text):
            self.written = text

    printer = Printer()
    measured._repr_pretty_(printer, False)
    assert printer.written == measured
    relation.profile._repr_pretty_(printer, False)
    assert printer.written == measured
    assert relation.profile._repr_html_() == measured._repr_html_()


def test_colours_are_those_around():
    html = fragment(element("p", "x"))
    style = html.partition("</style>")[0]
    assert not re.search(r"#[0-9a-fA-F]{3}", style)
    assert "url(" not in html
    assert "http" not in html


@pytest.fixture
def profile(filled):
    with bamquery.connect(filled, threads=1) as con:
        relation = con.sql('SELECT sum(noise) AS "$x_1$" FROM numbers WHERE position BETWEEN 6000 AND 6100')
        relation.fetchall()
        return relation.profile


def test_a_plot(profile):
    pytest.importorskip("matplotlib")
    figure = profile.plot()
    columns, operators = figure.axes
    assert [text.get_text() for text in columns.get_yticklabels()] == ["position", "noise"]
    assert "Scan numbers" in [text.get_text() for text in operators.get_yticklabels()]
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in columns.containers}
    position = profile.scans[0].columns["position"]
    assert position.vectors_pruned > 20
    assert widths["pruned"][0] == position.vectors_pruned * 1024 * 8
    for place, column in enumerate(profile.scans[0].columns.values()):
        read = widths["streamed"][place] + widths["fetched"][place]
        assert read == column.counters.bytes
    assert sum(widths["fetched"]) > 0
    figure.canvas.draw()


def test_a_plot_of_what_scans_nothing(con):
    pytest.importorskip("matplotlib")
    relation = con.sql("SELECT 1 AS x")
    relation.fetchall()
    assert len(relation.profile.plot().axes) == 1


def test_without_matplotlib(profile, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(bamquery.BamQueryError, match=r"plot\(\) needs matplotlib.*pip install matplotlib"):
        profile.plot()
