"""CSV: values in quotes where they need them, so that each is read back, and NULL stays apart from ''."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.output.cells import cell_strings
from bamquery.output.display_options import DisplayOptions
from bamquery.text.identifiers import unique_names

_SPECIAL: Final = "\n\r#"
"""Besides what options name: characters for which a value is quoted; # begins comments elsewhere."""


@dataclass(frozen=True, slots=True)
class Punctuation:
    """What a CSV file has between and around values, and for null."""

    quote: str = '"'
    escape: str = '"'
    delimiter: str = ","
    null: str = ""


def write_csv(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO, options: DisplayOptions
) -> int:
    """As COPY TO writes it; the options' null value is the text for NULL."""
    return _write(batches, schema, out, options, ",")


def write_tsv(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO, options: DisplayOptions
) -> int:
    """The same with tabs for commas."""
    return _write(batches, schema, out, options, "\t")


def _write(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    out: BinaryIO,
    options: DisplayOptions,
    delimiter: str,
) -> int:
    how = Punctuation(delimiter=delimiter, null=options.null_value or "")
    rows = 0
    for number, lines in csv_lines(batches, schema, how, headers=options.headers):
        out.write(lines)
        rows += number
    return rows


def csv_lines(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    how: Punctuation,
    *,
    headers: bool = True,
    quoted: Sequence[bool] = (),
) -> Iterator[tuple[int, bytes]]:
    """Pieces of the file with how many rows each has; `quoted` says which columns are always in quotes."""
    always = quoted or [False] * len(schema)
    if headers:
        names: list[Any] = [pa.array([name], pa.large_string()) for name in unique_names(schema.names)]
        yield (
            0,
            _lines([_quote_values(name, how, every) for name, every in zip(names, always, strict=True)], how),
        )
    for batch in batches:
        columns = [
            _quote_values(cell_strings(column), how, every)
            for column, every in zip(batch.columns, always, strict=True)
        ]
        yield batch.num_rows, _lines(columns, how)


def _lines(columns: Sequence[Any], how: Punctuation) -> bytes:
    """The rows as text, each with the end of its line."""
    kind = pa.large_string()
    joined: Any = pc.binary_join_element_wise(
        *(column.cast(kind) for column in columns),
        pa.scalar(how.delimiter, kind),
        null_handling="replace",
        null_replacement=how.null,
    )
    ended: Any = pc.binary_join_element_wise(joined, pa.scalar("", kind), pa.scalar("\n", kind))
    return b"".join(bytes(buffer) for buffer in _characters(ended))


def _characters(column: Any) -> Iterable[memoryview]:
    """What strings without nulls hold, one after the other."""
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if len(chunk):
            first, last = chunk.offset, chunk.offset + len(chunk)
            buffers: Any = chunk.buffers()
            places = memoryview(buffers[1]).cast("q")
            yield memoryview(buffers[2])[places[first] : places[last]]


def _quote_values(column: Any, how: Punctuation, every: bool) -> Any:
    """Values in quotes where they need them: so that a value is no null, and has no end before its end."""
    marked = pc.replace_substring(column, how.escape, how.escape * 2)
    if how.quote != how.escape:
        marked = pc.replace_substring(marked, how.quote, how.escape + how.quote)
    quote = pa.scalar(how.quote, marked.type)
    inside: Any = pc.binary_join_element_wise(quote, marked, quote, pa.scalar("", marked.type))
    if every:
        return inside
    special = "".join(f"\\x{ord(character):02x}" for character in (how.quote, how.delimiter, *_SPECIAL))
    is_null_text = pc.equal(column, pa.scalar(how.null, column.type))
    needed = pc.or_(pc.match_substring_regex(column, f"[{special}]"), is_null_text)
    return pc.if_else(needed, inside, column)
