"""Functions that exist over windows only."""

from __future__ import annotations

from typing import Final

from bamquery.function_catalog.entry import Entry, Section

_NUMBER: Final = "() -> BIGINT"
_SHARE: Final = "() -> DOUBLE"
_VALUE: Final = "(x ANY) -> ANY"
_NEIGHBOUR: Final = "(x ANY [, rows BIGINT [, default ANY]]) -> ANY"

SECTION: Final = Section(
    "Windows",
    "window",
    (
        Entry("row_number", _NUMBER, "The row's number in its partition, from 1."),
        Entry("rank", _NUMBER, "The number of rows before the row's peers, plus 1."),
        Entry("dense_rank rank_dense", _NUMBER, "The number of different peers before the row, plus 1."),
        Entry("percent_rank", _SHARE, "(rank - 1) / (rows - 1); 0 of one row."),
        Entry("cume_dist", _SHARE, "The share of the partition's rows up to the row's last peer."),
        Entry(
            "ntile",
            "(n BIGINT) -> BIGINT",
            "Which of n parts of about the same size the row is in; less than 1 is an error.",
        ),
        Entry("lag", _NEIGHBOUR, "x of the row so many (1) rows before, or a default where there is none."),
        Entry("lead", _NEIGHBOUR, "x of the row so many (1) rows behind, or a default where there is none."),
        Entry("first_value first", _VALUE, "x of the frame's first row."),
        Entry("last_value last", _VALUE, "x of the frame's last row."),
        Entry("nth_value", "(x ANY, n BIGINT) -> ANY", "x of the frame's row number n, or NULL."),
    ),
)
