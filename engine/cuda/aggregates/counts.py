"""count and count(*)."""

from __future__ import annotations

import pylibcudf as plc

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, Parts, added
from bamquery.engine.cuda.grouping import Codes
from bamquery.engine.cuda.kernels import Kernels


class CountRows(Accumulator):
    """All rows; 0 for a group without any."""

    exact = True

    def partial(self, kernels: Kernels, rows: Parts, codes: Codes) -> Parts:
        """One number a group."""
        return (codes.counted(kernels),)

    def merge(self, kernels: Kernels, parts: Parts, codes: Codes) -> Parts:
        """The sums."""
        return (added(kernels, parts[0], codes),)

    def final(self, kernels: Kernels, parts: Parts) -> plc.Column:
        """The numbers."""
        return parts[0]


class Count(CountRows):
    """Rows whose argument is not null."""

    def partial(self, kernels: Kernels, rows: Parts, codes: Codes) -> Parts:
        """One number a group."""
        return (codes.counted(kernels, rows[0]),)
