"""BamQuery over a database folder: from files in the page cache, or from columns in a GPU's memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from bamquery import __version__
from bamquery.connection.connection import connect
from bamquery.errors import BamQueryError, UnsupportedError
from bamquery.queries.measuring.kernels import finish_compiling
from bamquery.queries.speed.comparing import EXACT, Comparison
from bamquery.queries.speed.floors import Floor, Rates, floor_of
from bamquery.queries.speed.systems.system import Asked, RefusedError, Run
from bamquery.relations.relation import Relation

_RUNS_BEFORE: Final = 3
"""After which a GPU has the columns in its memory that it keeps there."""


class BamQueryFolder:
    """One connection.

    `cache_limit` is the setting `gpu_cache_limit`: with 0, each run reads its columns from files.
    """

    version = __version__
    queries = "our SQL"
    comparison: Comparison = EXACT

    def __init__(
        self,
        name: str,
        folder: Path,
        rates: Rates,
        *,
        device: str,
        threads: int,
        cache_limit: str | int | None,
    ) -> None:
        """Connect."""
        self.name = name
        self._connection = connect(folder, device=device, threads=threads, gpu_cache_limit=cache_limit)
        self._compiles = self._connection.gpu_cache is not None
        self._keeps = cache_limit != 0 and self._compiles
        self._rates = rates
        self._asked: Relation | None = None

    @property
    def data(self) -> str:
        """Files, and what a GPU keeps of them."""
        return "columns that stay in the GPU's memory" if self._keeps else "files in the page cache"

    def warm(self, questions: Sequence[Asked]) -> None:
        """Let columns come in, and kernels be compiled."""
        for asked in questions if self._compiles else ():
            for _ in range(_RUNS_BEFORE if self._keeps else 1):
                self._try(asked)
            finish_compiling(partial(self._try, asked))

    def _try(self, asked: Asked) -> None:
        with suppress(BamQueryError):  # which is told of when it is asked to be timed
            self.prepare(asked)()

    def prepare(self, asked: Asked) -> Run:
        """The text is what there is."""

        def run() -> pa.Table:
            try:
                self._asked = self._connection.sql(asked.sql)
                return self._asked.to_arrow()
            except UnsupportedError as error:
                raise RefusedError(str(error)) from error

        return run

    def floor(self) -> Floor | None:
        """By the last answer's profile."""
        return None if self._asked is None else floor_of(self._asked.profile, self._rates)

    def close(self) -> None:
        """Disconnect."""
        self._asked = None
        self._connection.close()
