"""What comes behind each block of a partition: known once all of its rows have been seen."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Generic

from bamquery.engine.device import Aggregation, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.spill_files import SpillFile
from bamquery.engine.operators.window.call_methods import CallMethod
from bamquery.engine.operators.window.partition_blocks import PartitionBlock
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.nodes import Field

State = Any


@dataclass(frozen=True, slots=True)
class Lookahead:
    """What comes behind a block; of calls that do not ask for it there are no states.

    Attributes:
        rows: behind the block, in the partition.
        peers: of those, the peers of the block's last row, where the block is a piece.
        after: for each call the state of all rows behind the block, or, where the block is a piece and
            the call has one value for a group, behind the group.
        group: for each such call the state of the group that the block is a piece of.
        whole: for each call the state of all rows of the partition.
    """

    rows: int = 0
    peers: int = 0
    states_after: Sequence[State | None] = ()
    group_states: Sequence[State | None] = ()
    partition_states: Sequence[State | None] = ()


@dataclass(slots=True)
class _SpilledBlock:
    """A block in the file, and what its rows come to."""

    rows: int
    groups: int
    continues: bool
    piece: bool
    states: list[State | None]


class LookaheadBlocks(Generic[Frame]):
    """Blocks of a partition with what follows them: at once as long as nobody asks, else by way of a file.

    Attributes:
        bytes: that the states held take.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        methods: Sequence[CallMethod],
        aggregations: Sequence[Aggregation[Frame, Any] | None],
        fields: Sequence[Field],
        profile: OperatorProfile,
    ) -> None:
        self._context = context
        self._methods: Final = tuple(methods)
        self._aggregations: Final = tuple(aggregations)
        self._fields = fields
        self._profile = profile
        self.bytes = 0

    def blocks(
        self, given: Iterator[PartitionBlock[Frame]]
    ) -> Generator[tuple[PartitionBlock[Frame], Lookahead], None, None]:
        """The same blocks in order, with what follows each.

        Raises:
            StorageError: the folder has no room for the rows.
        """
        unknown = Lookahead(states_after=[None] * len(self._methods))
        looks_ahead = any(method.looks_ahead for method in self._methods)
        of_groups = any(method.needs_groups for method in self._methods)
        for block in given:
            if looks_ahead or (block.piece and of_groups):
                yield from self._blocks_via_file(chain([block], given))
                return
            yield block, unknown

    def _blocks_via_file(
        self, given: Iterable[PartitionBlock[Frame]]
    ) -> Generator[tuple[PartitionBlock[Frame], Lookahead], None, None]:
        context = self._context
        assert context.spill_folder is not None
        with SpillFile(context.device, context.spill_folder, self._fields, self._profile) as file:
            seen: list[_SpilledBlock] = []
            for block in given:
                context.check_cancelled()
                file.write(block.frame)
                states = self._states(block)
                self.bytes += sum(state.nbytes for state in states if state is not None)
                seen.append(_SpilledBlock(block.rows, block.groups, block.continues, block.piece, states))
            following = self._look_ahead_backwards(seen)
            for frame, one, after in zip(file.frames(), seen, following, strict=True):
                yield PartitionBlock(frame, one.rows, one.groups, one.continues, one.piece), after
        self.bytes = 0

    def _states(self, block: PartitionBlock[Frame]) -> list[State | None]:
        return [
            aggregation.partial(block.frame)
            if aggregation is not None
            and (
                method.needs_state_after
                or method.is_one_frame
                or (method.is_one_frame_a_group and block.piece)
            )
            else None
            for method, aggregation in zip(self._methods, self._aggregations, strict=True)
        ]

    def _look_ahead_backwards(self, blocks: Sequence[_SpilledBlock]) -> list[Lookahead]:
        """What follows each block, from the last one on."""
        found: list[Lookahead] = []
        after: list[State | None] = [None] * len(self._methods)
        group, behind_group = after, after
        rows = peers = 0
        for number in range(len(blocks) - 1, -1, -1):
            self._context.check_cancelled()
            one = blocks[number]
            last_of_group = number + 1 == len(blocks) or not blocks[number + 1].continues
            if last_of_group:
                peers, behind_group = 0, after
                group = self._group(blocks, number) if one.piece else after
            own = [
                of_group if method.is_one_frame_a_group else behind
                for method, of_group, behind in zip(self._methods, behind_group, after, strict=True)
            ]
            found.append(Lookahead(rows, peers, own, group))
            rows += one.rows
            peers += one.rows
            after = [
                self._merge_states(i, state, behind)
                for i, (state, behind) in enumerate(zip(one.states, after, strict=True))
            ]
        return [Lookahead(f.rows, f.peers, f.states_after, f.group_states, after) for f in reversed(found)]

    def _group(self, blocks: Sequence[_SpilledBlock], last: int) -> list[State | None]:
        """The states of the group whose last piece has that number."""
        first = last
        while blocks[first].continues:
            first -= 1
        states: list[State | None] = [None] * len(self._methods)
        for one in blocks[first : last + 1]:
            states = [
                self._merge_states(i, *pair) for i, pair in enumerate(zip(states, one.states, strict=True))
            ]
        return states

    def _merge_states(self, call: int, first: State | None, second: State | None) -> State | None:
        """The state of rows and those behind them."""
        if first is None or second is None:
            return second if first is None else first
        aggregation = self._aggregations[call]
        assert aggregation is not None
        return aggregation.merge([first, second])
