"""Tables for documents: Markdown, HTML and LaTeX, in which no value can be markup."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final

import pyarrow as pa

from bamquery.output.cells import cell_strings, is_number
from bamquery.output.display_options import DisplayOptions
from bamquery.text.terminal import escape_line

_LINE_END: Final = re.compile(r"\r\n|\n")
_MARKDOWN: Final = re.compile(r"[\\|<`*\[]|(?<!\w)_|_(?!\w)")
_HYPHENS: Final = re.compile(r"-(?=-)")
"""Of which LaTeX would make a dash."""
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After the end of a row these two would belong to it.
    "[": "{[}",
    "*": "{*}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_Rows = Iterator[list[str]]


def write_markdown(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO, options: DisplayOptions
) -> int:
    """A pipe table, numbers flush right."""
    rules = ["---:" if is_number(field.type) else ":---" for field in schema]
    names = [_markdown(name) for name in schema.names]
    out.write(_markdown_line(names) + _markdown_line(rules))
    rows = 0
    for cells in _rows(batches, _markdown, options):
        out.write(_markdown_line(cells))
        rows += 1
    return rows


def write_html(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO, options: DisplayOptions
) -> int:
    """A <table> without a document around it, numbers flush right."""
    opened = ['<td style="text-align: right">' if is_number(field.type) else "<td>" for field in schema]
    out.write(b"<table>\n")
    if options.headers:
        names = "".join(f"<th>{_html(name)}</th>" for name in schema.names)
        out.write(f"<thead>\n<tr>{names}</tr>\n</thead>\n".encode())
    out.write(b"<tbody>\n")
    rows = 0
    for cells in _rows(batches, _html, options):
        row = "".join(f"{tag}{cell}</td>" for tag, cell in zip(opened, cells, strict=True))
        out.write(f"<tr>{row}</tr>\n".encode())
        rows += 1
    out.write(b"</tbody>\n</table>\n")
    return rows


def write_latex(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO, options: DisplayOptions
) -> int:
    """A tabular, numbers flush right; it needs no package."""
    columns = "".join("r" if is_number(field.type) else "l" for field in schema)
    out.write(f"\\begin{{tabular}}{{{columns}}}\n\\hline\n".encode())
    if options.headers:
        out.write(_latex_line([_latex(name) for name in schema.names]) + b"\\hline\n")
    rows = 0
    for cells in _rows(batches, _latex, options):
        out.write(_latex_line(cells))
        rows += 1
    out.write(b"\\hline\n\\end{tabular}\n")
    return rows


def _rows(
    batches: Iterable[pa.RecordBatch], escape: Callable[[str], str], options: DisplayOptions
) -> Iterator[list[str]]:
    null = escape("NULL" if options.null_value is None else options.null_value)
    for batch in batches:
        for values in zip(*(cell_strings(column).to_pylist() for column in batch.columns), strict=True):
            yield [null if value is None else escape(value) for value in values]


def _markdown_line(cells: Iterable[str]) -> bytes:
    return f"| {' | '.join(cells)} |\n".encode()


def _latex_line(cells: Iterable[str]) -> bytes:
    return f"{' & '.join(cells)} \\\\\n".encode()


def _markdown(text: str) -> str:
    return "<br>".join(
        _MARKDOWN.sub(lambda found: f"\\{found.group()}", escape_line(line)) for line in _LINE_END.split(text)
    )


def _html(text: str) -> str:
    return "<br>".join(html.escape(escape_line(line)) for line in _LINE_END.split(text))


def _latex(text: str) -> str:
    escaped = "".join(_LATEX.get(character, character) for character in escape_line(text))
    return _HYPHENS.sub("-{}", escaped)
