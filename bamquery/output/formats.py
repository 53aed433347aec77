"""The text formats of which several answers may follow each other, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import BinaryIO, Final, TypeAlias

import pyarrow as pa

from bamquery.output.csv_text import write_csv, write_tsv
from bamquery.output.display_options import DisplayOptions
from bamquery.output.document_tables import write_html, write_latex, write_markdown
from bamquery.output.inserts import write_inserts
from bamquery.output.json_text import write_json, write_json_lines
from bamquery.output.value_lines import write_lines

Writer: TypeAlias = Callable[[Iterable[pa.RecordBatch], pa.Schema, BinaryIO, DisplayOptions], int]
"""Writes batches of a schema to a stream; returns the number of rows."""

TEXT_FORMATS: Final[Mapping[str, Writer]] = MappingProxyType(
    {
        "line": write_lines,
        "csv": write_csv,
        "tsv": write_tsv,
        "json": write_json,
        "jsonl": write_json_lines,
        "markdown": write_markdown,
        "html": write_html,
        "latex": write_latex,
        "insert": write_inserts,
    }
)
