"""polars over Parquet or frames, on the processor or, by cudf-polars, on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import BamQueryError
from bamquery.queries.speed.comparing import CLOSE, ROUNDED, Comparison
from bamquery.queries.speed.systems.frames import Tables
from bamquery.queries.speed.systems.pdsh import Pdsh, cudf_polars_version
from bamquery.queries.speed.systems.system import Asked, RefusedError, Run

_LONGEST: Final = 400
"""Characters of an error: polars shows the plan in some."""


class PolarsTables:
    """Asked by functions of `pdsh` where there are any, else by our SQL."""

    def __init__(self, tables: Tables, pdsh: Pdsh | None, gpu: int | None = None) -> None:
        """`gpu`: its number, for cudf-polars; None: polars on the processor."""
        import polars  # noqa: PLC0415 (what this is about)

        self._tables = tables
        self._pdsh = pdsh
        self._engine: Any = "auto" if gpu is None else _gpu_engine(gpu)
        label = "polars" if gpu is None else "cudf-polars"
        self.name = f"{label}, {tables.place}"
        more = (
            f", {polars.thread_pool_size()} threads"
            if gpu is None
            else f", cudf-polars {cudf_polars_version()}"
        )
        self.version = polars.__version__ + more
        self.queries = "our SQL" if pdsh is None else f"pdsh of cudf-polars {pdsh.version}"
        self.comparison: Comparison = CLOSE if pdsh is None else ROUNDED

    @property
    def data(self) -> str:
        """For a GPU, host memory in either case: each run brings what it needs."""
        if self._tables.place == "parquet":
            return "Parquet in the page cache"
        if self._tables.place == "ipc":
            return "IPC files of its own, mapped, in the page cache"
        return "polars' frames in host memory"

    def warm(self, questions: Sequence[Asked]) -> None:
        """Its first answer does that."""

    def prepare(self, asked: Asked) -> Run:
        """What makes a lazy frame is timed with what collects it, as parsing SQL is."""
        make = self._frame_maker(asked)

        def run() -> pa.Table:
            try:
                answer: pa.Table = make().collect(engine=self._engine).to_arrow()
            except (Exception, _panic()) as error:  # polars' have no other root, and a GPU's come as they are
                kind = RefusedError if _is_refusal(error) else BamQueryError
                raise kind(f"{self.name}: {_in_one_line(error)}") from error
            return answer

        return run

    def _frame_maker(self, asked: Asked) -> Callable[[], Any]:
        if self._pdsh is not None:
            return self._pdsh.prepare(asked.query.name, asked.constants, self._tables.get)
        import polars  # noqa: PLC0415 (imported already)

        text = asked.sql.strip().removesuffix(";")
        context = polars.SQLContext(self._tables.get_all())
        return lambda: context.execute(text, eager=False)

    def floor(self) -> None:
        """It does not say what it read."""

    def close(self) -> None:
        """Frames are let go of with the tables."""


def _gpu_engine(ordinal: int) -> Any:
    """cudf-polars' executor of whole frames, in BamQuery's pool: by itself it takes most of the memory."""
    import polars  # noqa: PLC0415 (imported already)

    from bamquery.engine.cuda.device_memory import device_pool  # noqa: PLC0415 (needs a GPU)

    return polars.GPUEngine(
        executor="in-memory", raise_on_fail=True, device=ordinal, memory_resource=device_pool(ordinal)
    )


def _panic() -> type[BaseException]:
    """A fault of polars' Rust, which is no `Exception`."""
    from polars import exceptions  # noqa: PLC0415 (imported already)

    panic: type[BaseException] = exceptions.PanicException
    return panic


def _is_refusal(error: BaseException) -> bool:
    """Whether polars does not do something; its GPU engine says so in the words of another error."""
    from polars import exceptions  # noqa: PLC0415 (imported already)

    names = ("SQLInterfaceError", "SQLSyntaxError", "InvalidOperationError", "ColumnNotFoundError")
    kinds = tuple(getattr(exceptions, name) for name in names)
    return isinstance(error, (*kinds, NotImplementedError)) or "NotImplementedError" in str(error)


def _in_one_line(error: BaseException) -> str:
    words = " ".join((str(error) or type(error).__name__).split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
