"""Frames of which an operator makes more than fits at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.ordered_map import are_small_frames, is_small_frame, ordered_map
from bamquery.errors import MemoryLimitError

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class _TooLarge(Generic[Frame]):
    frame: Frame


def map_split_on_out_of_memory(
    context: ExecutionContext[Frame], function: Callable[[Frame], Answer], frames: Iterable[Frame]
) -> Generator[Answer, None, None]:
    """`function` of each frame, as `ordered_map`, in the rows' order.

    Where it raises `MemoryLimitError`, of halves of that frame, and of theirs, each made only when the
    answer before is done with.

    Raises:
        MemoryLimitError: a single row needs too much.
        CancelledError: the query was cancelled.
    """
    answered = partial(_compute_if_it_fits, context, function)
    is_small = partial(is_small_frame, context.device)
    with closing(ordered_map(context, answered, frames, is_small=is_small)) as answers:
        yield from _with_halves(context, function, answers)


def map_chunks_split_on_out_of_memory(
    context: ExecutionContext[Frame], function: Callable[[Frame], Answer], chunks: Iterable[Sequence[Frame]]
) -> Generator[Answer, None, None]:
    """The same of chunks as `gather_frames` gives them, each joined by the thread that works on it.

    Raises:
        MemoryLimitError, CancelledError: see there.
    """
    is_small = partial(are_small_frames, context.device)

    def answered(gathered: Sequence[Frame]) -> Answer | _TooLarge[Frame]:
        return _compute_if_it_fits(context, function, context.device.concatenate(gathered))

    with closing(ordered_map(context, answered, chunks, is_small=is_small)) as answers:
        yield from _with_halves(context, function, answers)


def _with_halves(
    context: ExecutionContext[Frame],
    function: Callable[[Frame], Answer],
    answers: Iterable[Answer | _TooLarge[Frame]],
) -> Generator[Answer, None, None]:
    for answer in answers:
        if isinstance(answer, _TooLarge):
            yield from _compute_by_halves(context, function, answer.frame)
        else:
            yield answer


def _compute_if_it_fits(
    context: ExecutionContext[Frame], function: Callable[[Frame], Answer], frame: Frame
) -> Answer | _TooLarge[Frame]:
    try:
        return function(frame)
    except MemoryLimitError:
        if context.device.row_count(frame) <= 1:
            raise
        return _TooLarge(frame)


def _compute_by_halves(
    context: ExecutionContext[Frame], function: Callable[[Frame], Answer], frame: Frame
) -> Generator[Answer, None, None]:
    # No function within the other one: that would know itself, and the operator until a collection.
    device = context.device
    rows = device.row_count(frame)
    half = rows // 2
    for start, count in ((0, half), (half, rows - half)):
        context.check_cancelled()
        answer = _compute_if_it_fits(context, function, device.slice(frame, start, count))
        if isinstance(answer, _TooLarge):
            yield from _compute_by_halves(context, function, answer.frame)
        else:
            yield answer
            context.memory.relieve()
