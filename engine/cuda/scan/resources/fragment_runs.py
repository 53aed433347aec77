"""A table's fragments in runs that kernels can take at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bamquery.storage.fragments.fragment import Fragment

RUN_VECTORS: Final = 1 << 20
"""Of one run, a thousand million rows: what is resident stays small, however long the table is."""


def runs(fragments: Sequence[Fragment], columns: Sequence[str] = ()) -> Iterator[tuple[Fragment, ...]]:
    """A table's fragments in runs of at most RUN_VECTORS, or of one fragment.

    In a run each of the `columns` is stored in one way: kernels read packed ones otherwise than plain ones.
    """
    begin = count = 0
    before: tuple[tuple[bool, ...], ...] = ()
    for end, fragment in enumerate(fragments):
        stored = tuple(way_stored(fragment, column) for column in columns)
        if count and (stored != before or count + fragment.vector_count > RUN_VECTORS):
            yield tuple(fragments[begin:end])
            begin, count = end, 0
        count += fragment.vector_count
        before = stored
    if begin < len(fragments):
        yield tuple(fragments[begin:])


def way_stored(fragment: Fragment, column: str) -> tuple[bool, ...]:
    """Whether a column is packed or compressed, has a dictionary, and whether its vectors have parts."""
    layout = fragment.layout.columns[fragment.column_index(column)]
    encoding = layout.encoding
    is_compressed = encoding is not None and encoding.symbols is not None
    return encoding is not None, is_compressed, layout.dictionary is not None, fragment.has_parts(column)
