"""DuckDB's names for what a connection's methods do here; docs/python/duckdb-api.md has them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bamquery.connection.sources import ConnectionSources
from bamquery.errors import BamQueryError, UnsupportedError
from bamquery.relations.expressions.sql_literals import quoted_name
from bamquery.sql_frontend.parameters import Parameters

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from bamquery.relations.relation import Relation

_COMMITS = "every statement commits by itself, and one that fails changes nothing"


class ConnectionDuckdbNames(ConnectionSources):
    """Other names; and `execute`, whose answer the connection itself gives out, too."""

    _executed: Relation | None = None

    def sql(self, text: str, params: Parameters | None = None) -> Relation:
        """See `Connection`."""
        raise NotImplementedError

    # A statement, and its answer from the connection.

    def execute(self, text: str, params: Parameters | None = None) -> Relation:
        """As `sql`; the answer's rows can be had from the connection, too: `fetchone()` and its like.

        Those are of the thread's own making: threads that share a connection take the relation instead.
        """
        self._executed = self.sql(text, params)
        return self._executed

    def executemany(self, text: str, params: Iterable[Parameters]) -> Relation:
        """Run the statements once for each of several sets of values; each run commits by itself.

        Raises:
            BamQueryError: there is no set of values, or a run failed; those before it are done.
        """
        answer = None
        for values in params:
            answer = self.execute(text, values)
        if answer is None:
            raise BamQueryError("executemany has no values to run the statement with: params is empty")
        return answer

    @property
    def _answer(self) -> Relation:
        if self._executed is None:
            raise BamQueryError("there is no answer to take rows from: call execute() first, or sql()")
        return self._executed

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows of the latest `execute` that are left."""
        return self._answer.fetchall()

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row of the latest `execute`."""
        return self._answer.fetchone()

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows of the latest `execute`."""
        return self._answer.fetchmany(size)

    def df(self) -> pandas.DataFrame:
        """The answer of the latest `execute`, as `Relation.to_pandas`."""
        return self._answer.to_pandas()

    fetchdf = fetch_df = df

    def pl(self) -> polars.DataFrame:
        """The answer of the latest `execute`, as `Relation.to_polars`."""
        return self._answer.to_polars()

    def to_arrow_table(self) -> pa.Table:
        """The answer of the latest `execute`, as `Relation.to_arrow`."""
        return self._answer.to_arrow()

    fetch_arrow_table = to_arrow_table

    def to_arrow_reader(self, batch_size: int = 131_072) -> pa.RecordBatchReader:
        """The answer of the latest `execute`, as `Relation.to_arrow_reader`."""
        return self._answer.to_arrow_reader(batch_size)

    arrow = fetch_record_batch = to_arrow_reader

    def fetchnumpy(self) -> Any:
        """The answer of the latest `execute`, as `Relation.to_numpy`."""
        return self._answer.fetchnumpy()

    def torch(self) -> Any:
        """The answer of the latest `execute`, as `Relation.to_torch`."""
        return self._answer.to_torch()

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, None]] | None:
        """Names and types of the columns of the latest `execute`; None before the first."""
        return None if self._executed is None else self._executed.description

    @property
    def rowcount(self) -> int:
        """-1: rows are not counted before they are taken."""
        return -1

    # Relations.

    def query(self, text: str, params: Parameters | None = None) -> Relation:
        """The same as `sql`."""
        return self.sql(text, params)

    from_query = query

    def view(self, name: str) -> Relation:
        """All rows of a view, as `table`."""
        return self.sql(f"FROM {quoted_name(name)}")

    from_parquet = ConnectionSources.read_parquet
    from_csv_auto = ConnectionSources.read_csv

    def append(self, table_name: str, df: Any, *, by_name: bool = False) -> int:
        """Put the rows of a frame into a table; returns how many. `load` puts in rows of all kinds."""
        return self.from_df(df).insert_into(table_name, by_name=by_name)

    # Transactions, of which there are none.

    def begin(self) -> None:
        """Not there.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(f"there are no transactions of several statements: {_COMMITS}")

    def commit(self) -> None:
        """Nothing: what statements did is committed already."""
        self._session.require_open()

    def rollback(self) -> None:
        """Not there.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(f"nothing can be rolled back: {_COMMITS}")
