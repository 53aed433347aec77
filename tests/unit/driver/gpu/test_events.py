"""Events that are used again."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from bamquery.driver.gpu.events import EventPool
from bamquery.errors import GpuError


class Driver:
    """Counts calls, and knows what events stand for."""

    api = SimpleNamespace(
        CUevent_flags=SimpleNamespace(
            CU_EVENT_DISABLE_TIMING=SimpleNamespace(value=2), CU_EVENT_DEFAULT=SimpleNamespace(value=0)
        )
    )

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.recorded: dict[Any, str] = {}
        self.flags: dict[Any, int] = {}

    def __call__(self, action: str, function: str, *arguments: Any) -> Any:
        self.calls[function] += 1
        if function == "cuEventCreate":
            made = object()
            self.flags[made] = arguments[0]
            return made
        assert function == "cuEventRecord"
        if arguments[1] == "broken":
            raise GpuError("cannot record an event")
        self.recorded[arguments[0]] = arguments[1]
        return None

    def quietly(self, function: str, *arguments: Any) -> None:
        self.calls[function] += 1
        del self.flags[arguments[0]]


def test_what_is_given_back_is_recorded_anew() -> None:
    driver = Driver()
    pool = EventPool(driver)  # type: ignore[arg-type]
    first = pool.record("a")
    second = pool.record("b")
    assert first is not second
    assert driver.recorded == {first: "a", second: "b"}
    pool.give_back(first)
    assert pool.record("c") is first
    assert driver.recorded[first] == "c"
    assert driver.calls["cuEventCreate"] == 2


def test_events_with_times_are_others() -> None:
    driver = Driver()
    pool = EventPool(driver)  # type: ignore[arg-type]
    plain = pool.record("a")
    pool.give_back(plain)
    timed = pool.record("a", timed=True)
    assert timed is not plain
    assert (driver.flags[plain], driver.flags[timed]) == (2, 0)
    pool.give_back(timed, timed=True)
    assert pool.record("a", timed=True) is timed
    assert pool.record("a") is plain


def test_close_destroys_what_nobody_has() -> None:
    driver = Driver()
    pool = EventPool(driver)  # type: ignore[arg-type]
    held, free = pool.record("a"), pool.record("a", timed=True)
    pool.give_back(free, timed=True)
    pool.close()
    assert list(driver.flags) == [held]
    assert driver.calls["cuEventDestroy"] == 1


def test_what_could_not_be_recorded_is_kept() -> None:
    driver = Driver()
    pool = EventPool(driver)  # type: ignore[arg-type]
    with pytest.raises(GpuError):
        pool.record("broken")
    pool.record("a")
    assert driver.calls["cuEventCreate"] == 1
