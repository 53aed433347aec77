"""A query as a value: lazy, immutable, and asked again as often as one likes."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from bamquery.display import preview
from bamquery.driver.toolchain import INSTALL
from bamquery.engine.device import Device
from bamquery.engine.explain import explain_plan, explain_profile
from bamquery.engine.profile import QueryProfile
from bamquery.errors import BamQueryError, SqlError, within_depth
from bamquery.extras import require
from bamquery.gpu_results import cudf_frame, device_arrays, require_gpu
from bamquery.plan.nodes import Limit, Plan
from bamquery.plan.statements import Query
from bamquery.relation_text import aggregate_text, filter_text, order_text, project_text
from bamquery.result import Result
from bamquery.session import Session
from bamquery.sql.statements import bind
from bamquery.type_names import type_name
from bamquery.values import python_rows, require_polars_types
from bamquery.views import View, inline

if TYPE_CHECKING:
    import cudf
    import cupy
    import pandas
    import polars
    import torch

PREVIEW_ROWS: Final = 20


class Relation:
    """What a SELECT answers, over the table versions of the moment it was written.

    It runs each time its rows are asked for, and holds on to those versions until it is garbage
    collected or the connection is closed. Methods that change it return another relation. Only
    `fetchone` and `fetchmany` have a position, shared by all who call them.
    """

    def __init__(
        self,
        session: Session,
        plan: Plan,
        *,
        optimized: Plan | None = None,
        profile: QueryProfile | None = None,
        message: str = "",
        is_answer: bool = True,
    ) -> None:
        """Made by a connection.

        Args:
            session: the connection's.
            plan: what to run.
            optimized: the same after all rules, where that is known already.
            profile: of the run that led to the rows of `plan`, if there was one.
            message: to be shown instead of the rows.
            is_answer: False where the statement was not asked for its rows, such as CREATE TABLE.
        """
        self._session = session
        self._plan = plan
        self._optimized = optimized
        self._profile = profile
        self._cursor: Iterator[tuple[Any, ...]] | None = None
        self._lock = threading.Lock()
        self.message = message
        self.is_answer = is_answer

    # What it looks like.

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [field.name for field in self._plan.fields]

    @property
    def types(self) -> list[str]:
        """Types of the columns, as SQL spells them."""
        return [type_name(field.type) for field in self._plan.fields]

    @property
    def schema(self) -> pa.Schema:
        """Names and Arrow types of the columns."""
        return pa.schema([pa.field(field.name, field.type) for field in self._plan.fields])

    # Other relations from it.

    def filter(self, condition: str) -> Relation:
        """Rows for which an SQL condition is true: `filter("trip_distance >= 30")`."""
        return self._over(filter_text(condition))

    def project(self, *expressions: str) -> Relation:
        """Columns computed from these: `project("total_amount / trip_distance AS per_mile", "extra")`."""
        return self._over(project_text(expressions))

    def aggregate(self, *expressions: str, by: str | Sequence[str] = ()) -> Relation:
        """One row a group, or one row in all: `aggregate("avg(tolls_amount)", by="payment_type")`.

        The columns of `by` come first.
        """
        return self._over(aggregate_text(expressions, [by] if isinstance(by, str) else by))

    def order(self, *keys: str) -> Relation:
        """Rows in order: `order("pickup_at DESC", "fare_amount")`."""
        return self._over(order_text(keys))

    def limit(self, count: int, offset: int = 0) -> Relation:
        """At most `count` rows, after skipping `offset`."""
        limit = Limit(self._plan, _whole(count, "count"), _whole(offset, "offset"))
        return Relation(self._session, limit)

    def plan_of(self, session: Session) -> Plan:
        """What it runs, for a statement of its connection that names it.

        Raises:
            SqlError: the statement is another connection's.
        """
        if session is not self._session:
            raise SqlError("a relation can only be used by the connection that it is of: pass its to_arrow()")
        return self._plan

    # Its rows.

    def execute(self) -> Result:
        """A run of its own, to take batches from as they come; see `Result`."""
        result = self._session.run(self._plan, self._optimized)
        if self.is_answer:  # otherwise what counts is the run that did the work
            self._profile = result.profile
        return result

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Batches as they come, none of them empty; the whole answer is never in memory.

        Closing the iterator, or leaving it to be garbage collected, stops the query.
        """
        return _batches(self.execute())

    def to_arrow(self) -> pa.Table:
        """All rows."""
        with self.execute() as result:
            return result.table()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows, in pandas' types.

        Raises:
            BamQueryError: pandas is not installed.
        """
        require("pandas", "to_pandas()")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All rows, in polars' types.

        Raises:
            BamQueryError: polars is not installed, or has no such type, or two columns have one name.
        """
        library = require("polars", "to_polars()")
        require_polars_types(self._plan.fields)
        frame: polars.DataFrame = library.from_arrow(self.to_arrow())
        return frame

    def to_cudf(self) -> cudf.DataFrame:
        """All rows as cuDF's frame, over the GPU memory that they were computed in.

        Raises:
            BamQueryError: the query does not run on a GPU, or cuDF is not installed or has no such type.
        """
        _, device, frame = self._on_gpu("cudf", "to_cudf()", INSTALL)
        return cudf_frame(device, frame, self._plan.fields)

    def to_cupy(self) -> dict[str, cupy.ndarray]:
        """Columns by name as CuPy's arrays, without a copy; dates and timestamps are their counts.

        Raises:
            BamQueryError: the query does not run on a GPU, CuPy is not installed, or a column has nulls or
                is no array.
        """
        cupy, device, frame = self._on_gpu("cupy", "to_cupy()", INSTALL)
        arrays = device_arrays(device, frame, self._plan.fields)
        return {name: cupy.asarray(array) for name, array in arrays.items()}

    def to_torch(self) -> dict[str, torch.Tensor]:
        """Columns by name as torch's tensors, without a copy; as `to_cupy`.

        Raises:
            BamQueryError: as for `to_cupy`, of torch.
        """
        torch, device, frame = self._on_gpu("torch", "to_torch()", "pip install torch")
        arrays = device_arrays(device, frame, self._plan.fields)
        return {name: torch.as_tensor(array, device=device.name) for name, array in arrays.items()}

    def _on_gpu(self, module: str, purpose: str, install: str) -> tuple[Any, Device[Any], Any]:
        """A library, the device, and all rows there."""
        with self.execute() as result:
            require_gpu(result.profile.device, result.profile.notes, purpose)
            library = require(module, purpose, install)
            return library, *result.device_frame()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, for whatever takes Arrow streams: `polars.DataFrame(rel)`, `con.load("t", rel)`."""
        reader: Any = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python values; those that are left where `fetchone` has been called."""
        self._session.require_open()
        with self._lock:
            cursor, self._cursor = self._cursor, None
            return list(_rows(self.execute()) if cursor is None else cursor)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last one, once: then it begins again."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next `size` rows, fewer at the end; none after the last one, once: then it begins again."""
        self._session.require_open()
        most = _whole(size, "size")
        with self._lock:
            if self._cursor is None:
                self._cursor = _rows(self.execute())
            rows = list(islice(self._cursor, most))
            if not rows and most:
                self._cursor = None
            return rows

    # How it runs.

    @property
    def has_run(self) -> bool:
        """Whether there is a profile to look at."""
        return self._profile is not None

    @property
    def profile(self) -> QueryProfile:
        """Of the latest run: rows, time, strategies, bytes needed and read.

        Raises:
            BamQueryError: it has not been run.
        """
        if self._profile is None:
            raise BamQueryError("this relation has not been run yet: take its rows first, then its profile")
        return self._profile

    @within_depth()
    def explain(self, *, analyze: bool = False) -> str:
        """The physical plan with what each scan is expected to do; with `analyze` run, and as measured."""
        if not analyze:
            result = self._session.run(self._plan, self._optimized)
            return explain_plan(result.operator, result.profile.device, result.profile.notes)
        with self.execute() as result:
            for _ in result:
                pass
        return explain_profile(result.profile)

    def __repr__(self) -> str:
        """The first rows as a table; only these are computed, as far as the query allows."""
        if self.message:
            return self.message
        try:
            with self._session.run(Limit(self._plan, PREVIEW_ROWS + 1)) as result:
                rows = result.table()
        except BamQueryError as error:
            return f"<Relation ({', '.join(self.columns)}): {error}>"
        return preview(rows, PREVIEW_ROWS)

    @within_depth()
    def _over(self, text: str) -> Relation:
        catalog = self._session.catalog({"relation": View("relation", self._plan)})
        (statement,) = bind(text, catalog)
        assert isinstance(statement, Query)
        return Relation(self._session, inline(statement.plan))


# Not methods: generators that knew their relation would keep it, and the versions it holds, from being freed.


def _batches(result: Result) -> Iterator[pa.RecordBatch]:
    with result:
        yield from result


def _rows(result: Result) -> Iterator[tuple[Any, ...]]:
    for batch in _batches(result):
        yield from python_rows(batch)


def _whole(value: object, argument: str) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{argument} is a whole number, not {type(value).__name__}") from None
    if number < 0:
        raise ValueError(f"{argument} cannot be negative")
    return number
