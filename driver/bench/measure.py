"""Clients of native code, watched until their time is over."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from bamquery.driver.bench.workload import Figures, Interrupted, Latency, Progress

_LOOK_SECONDS = 0.05


class Run(Protocol):
    """Clients at work, as `_native.start_..._bench` returns them."""

    @property
    def operations(self) -> int:
        """So far."""

    @property
    def bytes(self) -> int:
        """So far."""

    @property
    def seconds(self) -> float:
        """Since they began."""

    @property
    def finished(self) -> bool:
        """Whether all gave up by themselves."""

    def stop(self) -> dict[str, Any]:
        """End them and add up."""


def measure(
    path: str,
    run: Run,
    seconds: float,
    progress: Progress,
    *,
    verify: bool,
    notes: tuple[str, ...] = (),
) -> Figures:
    """Figures of a run after `seconds`.

    Raises:
        Interrupted: Ctrl-C came first; its figures are what was done until then.
    """
    try:
        while (now := run.seconds) < seconds and not run.finished:
            progress(path, now, run.operations, run.bytes)
            time.sleep(min(_LOOK_SECONDS, max(seconds - now, 0)))
    except KeyboardInterrupt:
        figures = figures_of(path, run.stop(), verify=verify, notes=(*notes, "stopped by Ctrl-C"))
        raise Interrupted([figures]) from None
    return figures_of(path, run.stop(), verify=verify, notes=notes)


def figures_of(path: str, found: dict[str, Any], *, verify: bool, notes: tuple[str, ...] = ()) -> Figures:
    """What native code counted, with a note for whatever went wrong."""
    if found["errors"]:
        notes = (*notes, f"first error: {found['first_error']}")
    if found["mismatches"]:
        notes = (*notes, f"{found['mismatches']} reads were wrong, first at byte {found['first_mismatch']}")
    if found.get("direct_path"):
        notes = (*notes, f"the controller reads by {found['direct_path']}")
    wrong_after = found.get("wrong_after_writing", -1)
    if wrong_after >= 0:
        notes = (*notes, f"wrong when read back after the run: byte {wrong_after}")
    compared = verify and found["operations"] > 0
    return Figures(
        path=path,
        operations=found["operations"],
        bytes=found["bytes"],
        seconds=found["seconds"],
        cpu_seconds=found["cpu_seconds"],
        latency=Latency(**found["latency"]) if found["latency"] else None,
        errors=found["errors"],
        verified=(not found["mismatches"] and wrong_after < 0) if compared else None,
        notes=notes,
        counters=with_hit_ratio(found.get("counters", {})),
    )


def with_hit_ratio(counters: Mapping[str, float]) -> dict[str, float]:
    """A cache's counters, and which share of the looks found the page there."""
    looks = sum(counters.get(name, 0) for name in ("hits", "misses", "coalesced"))
    return dict(counters) | ({"hit_ratio": counters["hits"] / looks} if looks else {})
