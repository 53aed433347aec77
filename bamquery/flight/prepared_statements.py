"""Prepared statements: a text with parameters, and rows of values for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bamquery.errors import BamQueryError, within_depth
from bamquery.flight.running_statements import RunningCall
from bamquery.flight.statement_runner import Statements
from bamquery.sql_frontend.parameters import Parameters, parameter_names
from bamquery.text.identifiers import fold_case


@dataclass(slots=True, eq=False)
class Prepared:
    """A prepared statement: its text, names or numbers of its parameters, and the values bound last."""

    text: str
    names: tuple[str, ...]
    values: Parameters | None = None

    @classmethod
    def parse(cls, text: str) -> Prepared:
        """Parse a text.

        Raises:
            SqlError: it cannot be parsed.
        """
        with within_depth(text):
            return cls(text, parameter_names(text))

    def parameter_schema(self) -> pa.Schema:
        """A column a parameter; types are not known before there are values."""
        return pa.schema([pa.field(name, pa.null()) for name in self.names])

    def dataset_schema(self, statements: Statements, running: RunningCall) -> pa.Schema:
        """Of its answer. With parameters a guess, as types may depend on values; nothing where there is none.

        Raises:
            BamQueryError: it has no parameters, and cannot be bound.
        """
        if not self.names:
            return statements.schema(self.text, None, running)
        try:
            return statements.schema(self.text, self._as_parameters([None] * len(self.names)), running)
        except BamQueryError:
            running.check()
            return pa.schema([])

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Parameters | None]:
        """The values of each row: by name where columns are called as the parameters, else by place.

        Raises:
            ValueError: there are more or fewer columns than parameters.
        """
        for batch in batches:
            if batch.num_columns != len(self.names):
                raise ValueError(
                    f"the statement has {len(self.names)} parameters, and {batch.num_columns} columns of "
                    "values came"
                )
            places = {fold_case(name): place for place, name in enumerate(batch.schema.names)}
            order = [places.get(fold_case(name), -1) for name in self.names]
            if -1 in order:
                order = list(range(len(self.names)))
            columns = [batch.column(place) for place in order]
            for row in range(batch.num_rows):
                yield self._as_parameters([column[row].as_py() for column in columns])

    def _as_parameters(self, values: list[Any]) -> Parameters | None:
        if not self.names:
            return None
        if self.names[0].isdigit():
            return values
        return dict(zip(self.names, values, strict=True))
