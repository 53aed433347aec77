"""The examples of docs/command-line.md are what the command writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bamquery.output.display_options import FORMATS
from tests.unit.face.conftest import Run

PAGE = (Path(__file__).parents[4] / "docs" / "command-line.md").read_text()
QUERY = "SELECT 1 AS n, NULL AS nothing, 'a|b' AS word"


@pytest.mark.parametrize("kind", ["table", "box", "line", "csv", "jsonl", "markdown", "insert"])
def test_an_example(run: Run, kind: str) -> None:
    written = re.sub(r"\(\d.*s\)", "(3.2 ms)", run("--format", kind, "-c", QUERY).stdout)
    assert f"```text\n{written}```" in PAGE


def test_the_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "report.sql").write_text(
        "CREATE TABLE trips (vendor_id INTEGER, fare_amount DOUBLE, tip_amount DOUBLE);\n\n"
        "SELECT vendor_id, tip_amount, tip_amount / fare AS share, count(*) OVER (PARTITION BY vendor_id) AS "
        "trips_of_the_vendor FROM trips WHERE tip_amount > 0\n"
    )
    done = run("-f", "report.sql", cwd=tmp_path)
    assert done.stderr in PAGE


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_named(kind: str) -> None:
    assert f"`{kind}`" in PAGE
