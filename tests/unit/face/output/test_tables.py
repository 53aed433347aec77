"""Tables for people stay within their bounds and never lie about what they leave out."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.output.tables import preview, render


def test_alignment_nulls_and_types() -> None:
    table = pa.table({"n": [1, None, 300], "s": ["a", None, ""], "x": [1.0, 0.25, None]})
    assert render(table).splitlines() == [
        "╭────────┬─────────┬────────╮",
        "│      n │ s       │      x │",
        "│ BIGINT │ VARCHAR │ DOUBLE │",
        "├────────┼─────────┼────────┤",
        "│      1 │ a       │    1.0 │",
        "│   NULL │ NULL    │   0.25 │",
        "│    300 │         │   NULL │",
        "╰────────┴─────────┴────────╯",
    ]


def test_values_cannot_break_the_table() -> None:
    table = pa.table({"s": ["line\nbreak\ttab", "[bold]not markup[/bold]", "\x1b[31mred"]})
    text = render(table)
    assert "line\\nbreak\\ttab" in text
    assert "[bold]not markup[/bold]" in text
    assert "\\x1b[31mred" in text
    assert "\x1b" not in text


def test_wide_values_are_cut_where_they_do_not_fit() -> None:
    long = "x" * 500
    assert "x" * 39 + "…" in render(pa.table({"a": [long], "b": [long]}), width=100)
    assert max(map(len, render(pa.table({"a": [long]}), width=100).splitlines())) <= 100


def test_columns_in_the_middle_are_left_out() -> None:
    table = pa.table({f"column_{i:02}": [i] for i in range(40)})
    lines = render(table, width=80).splitlines()
    assert "column_00" in lines[1]
    assert "column_39" in lines[1]
    assert "column_20" not in lines[1]
    assert "…" in lines[2] or "…" in lines[1]
    assert lines[-1] == f"{40 - lines[1].count('column_')} of 40 columns left out"


@given(
    st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=30, unique=True),
    st.integers(0, 3),
    st.integers(40, 200),
)
def test_no_line_is_wider_than_allowed(names: list[str], rows: int, width: int) -> None:
    names = [name.encode("utf-8", "replace").decode() for name in names]
    table = pa.Table.from_arrays([pa.array([name] * rows, pa.large_string()) for name in names], names)
    for line in render(table, width).splitlines()[:-1]:
        # Characters that are two columns wide are counted as one here: rich takes care of those.
        assert len(line) <= width


@pytest.mark.parametrize(
    ("rows", "says"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (3, "the first 2 rows")]
)
def test_preview(rows: int, says: str) -> None:
    assert preview(pa.table({"a": list(range(rows))}), 2).splitlines()[-1] == says


def test_letters_of_two_columns_are_counted_as_such() -> None:
    lines = render(pa.table({"漢字": ["漢字漢字", "x"]})).splitlines()
    assert lines[3:6] == ["├──────────┤", "│ 漢字漢字 │", "│ x        │"]
    assert "漢字漢…" in render(pa.table({"s": ["漢字" * 9]}), width=12)
