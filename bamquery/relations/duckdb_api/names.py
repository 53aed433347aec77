"""DuckDB's names for what a relation's methods do here; docs/python/duckdb-api.md has them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from bamquery.engine.sources.scan_sources import FileSource
from bamquery.plan.nodes import Scan
from bamquery.relations.base import RelationBase
from bamquery.relations.expressions.pieces import piece
from bamquery.relations.expressions.sql_literals import quoted_name
from bamquery.relations.expressions.statement_builder import StatementBuilder
from bamquery.relations.frames.python_values import whole_number
from bamquery.sql_frontend.sql_text import sql_text
from bamquery.text.identifiers import fold_case

if TYPE_CHECKING:
    import pandas
    import polars

    from bamquery.relations.relation import Relation

_BATCH_ROWS = 131_072


class RelationDuckdbNames(RelationBase):
    """Other names, and methods that only DuckDB's users look for."""

    # Rows.

    def df(self) -> pandas.DataFrame:
        """`to_pandas()`."""
        return self._as_relation.to_pandas()

    fetchdf = to_df = df

    def pl(self) -> polars.DataFrame:
        """`to_polars()`."""
        return self._as_relation.to_polars()

    def arrow(self, batch_size: int = _BATCH_ROWS) -> pa.RecordBatchReader:
        """A reader of record batches of at most `batch_size` rows, as they come; `to_arrow()` is a table."""
        size = whole_number(batch_size, "batch_size") or 1
        batches = self._as_relation.to_batches()
        return pa.RecordBatchReader.from_batches(self.schema, _split_batches(batches, size))

    to_arrow_reader = fetch_arrow_reader = fetch_record_batch = arrow

    def to_arrow_table(self) -> pa.Table:
        """`to_arrow()`."""
        return self._as_relation.to_arrow()

    fetch_arrow_table = to_arrow_table

    def fetchnumpy(self) -> Any:
        """`to_numpy()`."""
        return cast("Any", self).to_numpy()

    def torch(self) -> Any:
        """`to_torch()`."""
        return self._as_relation.to_torch()

    def iter_rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows, as iterating over the relation gives them."""
        return iter(self._as_relation)

    # Relations.

    def execute(self) -> Relation:
        """The relation itself: it runs whenever its rows are asked for. `run()` is a run as an object."""
        return self._as_relation

    def materialize(self) -> Relation:
        """Run it once; a relation over the rows, which are kept in memory."""
        from bamquery.storage.ingest.opening import open_source  # noqa: PLC0415 (few need what reads files)

        source = FileSource(open_source(self._as_relation.to_arrow(), by_need=True))
        return self._derive(Scan(source, tuple(range(len(source.schema)))), "")

    def query(self, virtual_table_name: str, sql_query: str) -> Relation:
        """As `sql`, where the relation has the name that is given."""
        quoted_name(virtual_table_name)  # sees that it is one
        return self._execute_over(
            StatementBuilder().piece(sql_text(sql_query, "sql_query")), virtual_table_name
        )

    def union_by_name(self, other: RelationBase, *, all: bool = True) -> Relation:  # noqa: A002 (DuckDB's)
        """`union(other, by_name=True)`."""
        return self._as_relation.union(other, distinct=not all, by_name=True)

    def unique(self, unique_aggr: str) -> Relation:
        """The different values of columns."""
        return self._as_relation.select(f"DISTINCT {piece(unique_aggr, 'unique_aggr')}")

    def select_types(self, types: Sequence[str]) -> Relation:
        """The columns of these types, as `types` spells them."""
        wanted = {fold_case(str(kind)) for kind in ([types] if isinstance(types, str) else types)}
        names = [
            name for name, kind in zip(self._names, self.types, strict=True) if fold_case(kind) in wanted
        ]
        return self._as_relation[names]

    select_dtypes = select_types

    # Tables, views and files.

    def to_table(self, table_name: str) -> Relation:
        """`create(name)`."""
        return self._as_relation.create(table_name)

    def to_view(self, view_name: str, replace: bool = True) -> Relation:
        """`create_view(name)`, in place of one that is there."""
        return self._as_relation.create_view(view_name, replace=replace)

    def write_csv(self, file_name: str, **options: Any) -> int:
        """`to_csv(path)`, with its options."""
        return self._as_relation.to_csv(file_name, **options)

    def write_parquet(self, file_name: str, **options: Any) -> int:
        """`to_parquet(path)`, with its options."""
        return self._as_relation.to_parquet(file_name, **options)

    # What DB-API and DuckDB's classes have.

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, None]]:
        """Names and types of the columns, as PEP 249 has them."""
        return [
            (name, kind, None, None, None, None, None)
            for name, kind in zip(self.columns, self.types, strict=True)
        ]

    def close(self) -> None:
        """Let go of what `fetchone` and `fetchmany` have begun."""
        with self._lock:
            self._cursor = None

    @property
    def _as_relation(self) -> Relation:
        return cast("Relation", self)


def _split_batches(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)
