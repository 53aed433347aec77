"""Chunk after chunk: while one is being fetched, the next one's filter columns are on their way.

Nothing here knows what a chunk is, so that the order of the steps can be tested without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Final, Protocol, TypeVar

_AHEAD: Final = 3
"""Chunks that are being loaded, the one that is selected from included."""

Chunk_contra = TypeVar("Chunk_contra", contravariant=True)
Loading = TypeVar("Loading")
Answer_co = TypeVar("Answer_co", covariant=True)


class Stages(Protocol[Chunk_contra, Loading, Answer_co]):
    """What is done with each chunk, in this order."""

    def load(self, chunk: Chunk_contra) -> Loading:
        """Start to load what the chunk's first step looks at; does not wait."""
        ...

    def select(self, loading: Loading) -> Callable[[], Answer_co]:
        """Wait until it is known how many rows pass, and start to fetch these; the result waits for that.

        The wait also ends whatever was started for chunks before.
        """
        ...

    def discard(self, loading: Loading) -> None:
        """Nobody wants it any more."""
        ...

    def close(self) -> None:
        """No chunk follows: wait until nothing is being written, or keep what is."""
        ...


def overlap_chunks(
    stages: Stages[Chunk_contra, Loading, Answer_co], chunks: Iterable[Chunk_contra], alone: int = 1
) -> Generator[Answer_co, None, None]:
    """The chunks' answers in order.

    While chunk n is fetched, chunks n + 1 and n + 2 are loaded: what n + 2 waits for was started before n was
    fetched. The answer of n is taken after the wait of n + 1, so that there is one wait a chunk. The first
    `alone` chunks go by themselves: they may be all that is wanted.
    """
    waiting: list[Loading] = []
    fetching: Callable[[], Answer_co] | None = None
    source = iter(chunks)
    done = 0
    try:
        while True:
            ahead = 1 if done < alone else _AHEAD
            while len(waiting) < ahead:
                chunk = next(source, None)
                if chunk is None:
                    break
                waiting.append(stages.load(chunk))
            if not waiting:
                break
            before, fetching = fetching, None
            current = waiting.pop(0)
            try:
                fetching = stages.select(current)
            except BaseException:
                stages.discard(current)
                raise
            done += 1
            if before is not None:
                yield before()
            if done <= alone:
                before, fetching = fetching, None
                yield before()
        if fetching is not None:
            last, fetching = fetching, None
            yield last()
    finally:
        for loading in waiting:
            stages.discard(loading)
        stages.close()
