"""What overlaps with what, and what is cleaned up."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest


class Stages:
    """Writes down what it is asked."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.said: list[str] = []
        self._fails_at = fails_at

    def load(self, chunk: int) -> int:
        self.said.append(f"load {chunk}")
        return chunk

    def select(self, loading: int) -> Callable[[], int]:
        self.said.append(f"select {loading}")
        if loading == self._fails_at:
            raise ValueError(loading)

        def answer() -> int:
            self.said.append(f"answer {loading}")
            return loading

        return answer

    def discard(self, loading: int) -> None:
        self.said.append(f"discard {loading}")

    def close(self) -> None:
        self.said.append("close")


@pytest.fixture
def overlapped(scan_modules: None) -> Any:
    from bamquery.engine.cuda.scan.pipeline import overlap_chunks

    return overlap_chunks


def test_the_next_chunk_loads_while_one_is_fetched(overlapped: Any) -> None:
    stages = Stages()
    assert list(overlapped(stages, range(4), alone=0)) == [0, 1, 2, 3]
    assert stages.said == [
        *("load 0", "load 1", "load 2", "select 0", "load 3", "select 1", "answer 0"),
        *("select 2", "answer 1", "select 3", "answer 2", "answer 3", "close"),
    ]


def test_the_first_chunk_goes_alone(overlapped: Any) -> None:
    stages = Stages()
    assert list(overlapped(stages, range(3))) == [0, 1, 2]
    assert stages.said[:3] == ["load 0", "select 0", "answer 0"]
    assert stages.said[3:6] == ["load 1", "load 2", "select 1"]  # there is no third


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_chunks(overlapped: Any, count: int) -> None:
    stages = Stages()
    assert list(overlapped(stages, range(count))) == list(range(count))
    assert stages.said[-1] == "close"


def test_whoever_stops_early_leaves_nothing(overlapped: Any) -> None:
    stages = Stages()
    answers = overlapped(stages, iter(range(10)))
    assert list(islice(answers, 2)) == [0, 1]
    answers.close()
    assert stages.said[-3:] == ["discard 3", "discard 4", "close"]
    assert "load 5" not in stages.said


def test_a_failure_discards_what_was_loaded(overlapped: Any) -> None:
    stages = Stages(fails_at=2)
    with pytest.raises(ValueError, match="2"):
        list(overlapped(stages, range(10)))
    assert stages.said[-4:] == ["discard 2", "discard 3", "discard 4", "close"]
