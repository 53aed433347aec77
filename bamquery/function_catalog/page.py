"""docs/functions.md, written from the reference."""

from __future__ import annotations

import sys
from typing import Final

from bamquery.function_catalog.entry import Entry
from bamquery.function_catalog.function_reference import SECTIONS, gpu_support, row_by_row
from bamquery.function_catalog.missing_functions import missing_functions
from bamquery.function_catalog.signature import Signature

_GPU: Final = {"yes": "yes", "constants": "constants", "no": ""}

_PYTHON: Final = {"never": "", "always": "always", "columns": "columns", "hugeint": "HUGEINT"}


def reference_page() -> str:
    """docs/functions.md: all functions, section by section."""
    parts = [_INTRODUCTION]
    for section in SECTIONS:
        rows = [
            f"| {_calls(entry)} | {_cell(entry.description)} | {_GPU[gpu_support(entry, section.kind)]} "
            f"| {_PYTHON[row_by_row(entry, section.kind)]} |"
            for entry in section.entries
        ]
        table = ["| call | gives | GPU | Python |", "|---|---|---|---|", *rows]
        parts += [f"## {section.title}", "\n".join(table), *([section.notes] if section.notes else [])]
    absences = [
        f"| {why or 'no such function'} | {' '.join(f'`{name}`' for name in names)} |"
        for why, names in missing_functions().items()
    ]
    parts += ["## Not there", _ABSENCES, "\n".join(["| why | DuckDB's functions |", "|---|---|", *absences])]
    return "\n\n".join(parts) + "\n"


def _calls(entry: Entry) -> str:
    """How it is called under each of its names."""
    first, *others = entry.all_names
    signature = max(entry.parsed_signatures(), key=_length)
    calls = [entry.call or signature.call(first)]
    calls += [call if entry.call else signature.call(other) for other in others for call in [f"{other}(...)"]]
    return " ".join(f"`{_cell(call)}`" for call in calls)


def _length(signature: Signature) -> int:
    return len(signature.parameters)


def _cell(text: str) -> str:
    return text.replace("...", "…").replace("|", "\\|")


_INTRODUCTION: Final = """\
# Functions

<!-- Written by `python -m bamquery.function_catalog.page`: change what is said beside it. -->

All functions, with DuckDB 2.0's answers. Names side by side are of one function. An argument may be any
expression, but where it is said to be a *constant*; NULL gives NULL where nothing else is said. Arguments in
brackets may be left out. `FROM bamquery_functions()` has the same as a table, with the types of arguments and
answers.

The column *GPU* says what runs there, too: *yes*, *constants* (if all arguments but the first are
constants), or nothing, where a query over columns is refused there with its reason. A call of constants is
computed when the query is planned and runs on every device.

The column *Python* says where the CPU calls Python for every row, or every different value of one column,
which takes far longer than what runs over whole columns: *always*, *columns* (if an argument after the first
is a column) or *HUGEINT* (of that type). EXPLAIN names such functions of a query."""

_ABSENCES: Final = """\
DuckDB's functions that are refused by name, before anything is read; of a family all that begin so, but for
those above."""


if __name__ == "__main__":
    sys.stdout.write(reference_page())
