"""What runs warm has its kernels."""

from __future__ import annotations

import pytest

from bamquery.queries.measuring import kernels


class Pool:
    """One that is busy a few times."""

    def __init__(self, times: int, *, ends: bool = True) -> None:
        self.times = times
        self._ends = ends

    @property
    def busy(self) -> bool:
        return self.times > 0

    def settle(self, timeout_s: float) -> bool:
        assert timeout_s > 0
        self.times -= 1
        return self._ends


@pytest.mark.parametrize(("pool", "asked"), [(Pool(0), 0), (Pool(2), 2), (Pool(2, ends=False), 0)])
def test_asked_again_until_nothing_is_compiled(
    pool: Pool, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "POOL", pool)
    found: list[int] = []
    kernels.finish_compiling(lambda: found.append(pool.times))
    assert len(found) == asked
