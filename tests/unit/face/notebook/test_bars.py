"""Progress below a cell."""

from __future__ import annotations

import threading

import pytest

from bamquery.session.progress import notebook
from bamquery.session.progress.notebook import NotebookBars, bar_html, in_notebook
from bamquery.session.progress.ticker import Ticker, WatcherGroup
from tests.unit.face.progress.gates import Gate, Taking


def test_a_shell_is_no_notebook(cells):
    assert not in_notebook()
    cells.shell.kernel = object()
    assert in_notebook()


@pytest.fixture
def impatient(monkeypatch):
    """Bars that come at once."""
    monkeypatch.setattr(notebook, "PATIENCE", 0.0)
    bars = NotebookBars()
    bars.delay = bars.interval = 0.01
    return bars


def test_a_bar_is_renewed_and_emptied(cells, con, impatient, monkeypatch):
    drawn = threading.Event()
    shown = []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle)
            drawn.set()

    def display(bundle, raw, display_id):
        shown.append(bundle)
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    gate = Gate(con)
    result = con.sql("SELECT x FROM gated").run()
    impatient.begin(result.running)
    result.running.observer = WatcherGroup((impatient,), Ticker())
    taking = Taking(result)
    assert drawn.wait(60)
    gate.open()
    taking.finish()
    assert "<progress" in shown[0]["text/html"]
    assert "Running: 0 rows, cpu" in shown[0]["text/html"]
    assert shown[-1] == {"text/html": "", "text/plain": ""}


def test_a_bar_is_no_markup(con):
    query = con.sql("SELECT 1").run().running
    query.description = "Writing <b>"
    assert "Writing &lt;b&gt;" in bar_html(query)
    assert 'value="0.000"' not in bar_html(query)  # nothing to scan: nobody knows
