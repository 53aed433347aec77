"""What all strategies of joins have in common: the task that they are given, and what they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeAlias

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.spill_files import spilled_fields
from bamquery.engine.operators.join.build_side import BuildSide
from bamquery.engine.operators.join.device_join import several_rows_error
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.operators.join.probe import JoinProbe
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.nodes import Field, JoinKind

ProbeRows: TypeAlias = Callable[[], Generator[Frame, None, None]]
"""Asked once for the rows of the probe side, when those of the build side are known."""


class JoinStrategy(Protocol[Frame]):
    """One way to join two sides, made for one task."""

    def join(self, probe: ProbeRows[Frame], build: Iterable[Frame]) -> Generator[Frame, None, None]:
        """The rows, unmatched ones of the build side last.

        Raises:
            ExecutionError: a key or condition cannot be computed, or a single row has several partners.
            MemoryLimitError: there is nowhere to keep what does not fit.
            StorageError: the folder has no room for it.
        """
        ...


@dataclass
class KeptBuild(Generic[Frame]):
    """Build sides that stay in memory for the next run.

    Attributes:
        memory: what they are counted in.
        sides: empty until the first run has them.
        probes: theirs, where another run may have the same.
    """

    memory: Reservation
    sides: Sequence[BuildSide[Frame]] = ()
    probes: list[JoinProbe[Frame]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class JoinTask(Generic[Frame]):
    """A join, or one partition of it.

    Attributes:
        probe_fields: columns of the probe side.
        build_fields: columns of the build side.
        memory: of build rows.
        profile: of the operator.
        level: how often both sides were partitioned before.
        encodes: whether strings of the build side may come as `Device.dictionary_encode` has them.
        kept: takes build sides in memory for another run; None: there is none.
    """

    context: ExecutionContext[Frame]
    kind: JoinKind
    condition: JoinCondition
    probe_fields: Sequence[Field]
    build_fields: Sequence[Field]
    memory: Reservation
    profile: OperatorProfile
    level: int = 0
    encodes: bool = False
    kept: KeptBuild[Frame] | None = None

    def partition(self, level: int) -> JoinTask[Frame]:
        """One partition of it, with columns as files give them back."""
        return replace(
            self,
            probe_fields=spilled_fields(self.probe_fields),
            build_fields=spilled_fields(self.build_fields),
            level=level,
            encodes=False,
            kept=None,
        )

    def gives_nothing(self, build_rows: int) -> bool:
        """Whether it has no rows, whatever the probe side is."""
        if self.kind == "right":
            return not build_rows
        return self.kind in ("inner", "semi") and (not build_rows or self.condition.is_never_true)

    def require_single(self, build_rows: int) -> None:
        """See that no probe row has several partners, as far as that is known before they are read.

        Raises:
            ExecutionError: each of them has.
        """
        every_row_pairs = not self.condition.probe_keys and self.condition.residual is None
        if self.kind == "single" and every_row_pairs and build_rows > 1:
            raise several_rows_error()

    def add_figure(self, name: str, more: int) -> None:
        """Add to a figure of the profile."""
        self.profile.details[name] = self.profile.details.get(name, 0) + more
