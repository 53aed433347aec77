"""What operators ask of a device before rows come: what one pass computes, and to begin with kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from bamquery.plan.expressions import AggregateCall, Expression


class AggregatingDevice(Protocol):
    """What an aggregate asks before it begins."""

    def gathers_in_one_pass(self, aggregates: Sequence[AggregateCall]) -> bool:
        """See `Device`."""
        ...


@runtime_checkable
class CompilingDevice(AggregatingDevice, Protocol):
    """A device that compiles kernels for what a statement computes. It does so in any case: this is earlier.

    `nullable`: of each column of the frames that will come whether some rows may be null; None: not known.
    The methods return at once, and raise nothing where something cannot be compiled.
    """

    def start_compiling(self, expressions: Sequence[Expression], nullable: Sequence[bool | None]) -> None:
        """Begin with what `evaluate` will take."""
        ...

    def start_compiling_filter(self, predicate: Expression, nullable: Sequence[bool | None]) -> None:
        """Begin with what `matching_positions` will take."""
        ...

    def start_compiling_aggregates(
        self, calls: Sequence[AggregateCall], nullable: Sequence[bool | None], *, by_keys: bool
    ) -> None:
        """Begin with what an aggregation of these calls will take, of groups by keys or of one group."""
        ...
