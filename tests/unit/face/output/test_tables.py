"""Tables for people stay within their bounds and never lie about what they leave out."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.output.text_table import TableLayout, TableStyle, preview, render
from bamquery.text.terminal import cell_width, escape_line


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
    assert "…" in lines[2]
    shown = lines[1].count("column_")
    assert lines[-1].startswith(f"{40 - shown} of 40 columns left out: column_{shown - shown // 2:02}, ")
    assert lines[-1].endswith("…")
    assert max(map(cell_width, lines)) <= 80


@given(
    st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=30, unique=True),
    st.integers(0, 3),
    st.integers(40, 200),
)
def test_no_line_is_wider_than_allowed(names: list[str], rows: int, width: int) -> None:
    names = [name.encode("utf-8", "replace").decode() for name in names]
    table = pa.Table.from_arrays([pa.array([name] * rows, pa.large_string()) for name in names], names)
    for line in render(table, width).split("\n"):
        assert cell_width(line) <= width
        assert escape_line(line) == line


@pytest.mark.parametrize(
    ("rows", "says"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (3, "the first 2 rows")]
)
def test_preview(rows: int, says: str) -> None:
    assert preview(pa.table({"a": list(range(rows))}), 2).splitlines()[-1] == says


def test_letters_of_two_columns_are_counted_as_such() -> None:
    lines = render(pa.table({"漢字": ["漢字漢字", "x"]})).splitlines()
    assert lines[3:6] == ["├──────────┤", "│ 漢字漢字 │", "│ x        │"]
    assert "漢字漢…" in render(pa.table({"s": ["漢字" * 9]}), width=12)


def rendered(table: pa.Table, style: TableStyle) -> list[str]:
    layout = TableLayout(table, style)
    return [*layout.top(), *layout.body(table), *layout.bottom()]


def test_texts_are_cut_before_columns_go_and_numbers_never() -> None:
    table = pa.table({"s": ["x" * 100], "n": [12345678901234567], "t": ["y" * 100]})
    lines = render(table, width=80).splitlines()
    assert {cell_width(line) for line in lines} <= {79, 80}
    assert "12345678901234567" in lines[4]
    assert lines[4].count("…") == 2
    assert len(lines) == 6


def test_any_width_shows_everything() -> None:
    table = pa.table({f"c{i}": ["z" * 300] for i in range(9)})
    lines = rendered(table, TableStyle(width=0))
    assert lines[4].count("z") == 2700
    assert not any("…" in line for line in lines)


def test_a_style() -> None:
    table = pa.table({"n": [1, None], "text": ["abcdefgh", "\x1b[0m"]})
    style = TableStyle(types=False, null="∅", square=True, column_widths=(0, 5))
    assert rendered(table, style) == [
        "┌───┬───────┐",
        "│ n │ text  │",
        "├───┼───────┤",
        "│ 1 │ abcd… │",
        "│ ∅ │ \\x1b… │",
        "└───┴───────┘",
    ]
    assert rendered(table, TableStyle(headers=False))[:2] == ["╭──────┬──────────╮", "│    1 │ abcdefgh │"]


def test_later_rows_are_cut_to_the_first_ones() -> None:
    layout = TableLayout(pa.table({"s": ["abc"]}), TableStyle(types=False))
    assert list(layout.body(pa.table({"s": ["abcdef", None]}))) == ["│ ab… │", "│ NU… │"]


def test_a_combining_character_takes_no_column() -> None:
    lines = render(pa.table({"s": ["e\u0301" * 4, "abcd"]})).splitlines()
    assert {cell_width(line) for line in lines} == {11}


@pytest.mark.parametrize("width", [1, 5, 12])
def test_a_column_is_shown_however_narrow_the_terminal_is(width: int) -> None:
    lines = render(pa.table({"a": ["abcdefgh" * 9], "b": [1]}), width).splitlines()
    assert len(lines) >= 6
    assert all(cell_width(line) <= max(width, 9) for line in lines)
