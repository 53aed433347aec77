"""Runs on several drives as one: they begin and end together, and each has figures of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bamquery.driver.bench.measure import Run
from bamquery.driver.bench.workload import DriveFigures


@dataclass(frozen=True)
class Part:
    """Clients at work on one drive.

    Attributes:
        run: them.
        figures: what to say of the drive, of what `run.stop()` returned.
    """

    run: Run
    figures: Callable[[dict[str, Any]], DriveFigures]


class Together:
    """Clients on all drives: a `measure.Run`."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self.drives: tuple[DriveFigures, ...] = ()

    @property
    def operations(self) -> int:
        """So far."""
        return sum(part.run.operations for part in self._parts)

    @property
    def bytes(self) -> int:
        """So far."""
        return sum(part.run.bytes for part in self._parts)

    @property
    def seconds(self) -> float:
        """Since they began."""
        return min(part.run.seconds for part in self._parts)

    @property
    def finished(self) -> bool:
        """Whether all gave up by themselves."""
        return all(part.run.finished for part in self._parts)

    def stop(self) -> dict[str, Any]:
        """End them and add up."""
        found = [part.run.stop() for part in self._parts]
        self.drives = tuple(part.figures(one) for part, one in zip(self._parts, found, strict=True))
        wrong = [one for one in found if one["mismatches"]]
        counters: Counter[str] = Counter()
        for one in found:
            counters.update(one.get("counters", {}))
        counters["doorbell_writes"] = sum(drive.doorbell_writes or 0 for drive in self.drives)
        return {
            "operations": sum(one["operations"] for one in found),
            "bytes": sum(one["bytes"] for one in found),
            "seconds": max(one["seconds"] for one in found),
            "cpu_seconds": max(one["cpu_seconds"] for one in found),
            "latency": _slowest([one["latency"] for one in found if one["latency"]]),
            "errors": sum(one["errors"] for one in found),
            "first_error": next(
                (
                    f"{drive.namespace}: {one['first_error']}"
                    for drive, one in zip(self.drives, found, strict=True)
                    if one["errors"]
                ),
                "",
            ),
            "mismatches": sum(one["mismatches"] for one in found),
            "first_mismatch": wrong[0]["first_mismatch"] if wrong else 0,
            "wrong_after_writing": max(one.get("wrong_after_writing", -1) for one in found),
            "direct_path": next((one["direct_path"] for one in found if one.get("direct_path")), ""),
            "counters": dict(counters),
        }


def in_flight(found: dict[str, Any]) -> float | None:
    """Commands, on average, of what a run of blocks returned."""
    if not found["latency"] or not found["seconds"]:
        return None
    mean: float = found["latency"]["mean"]
    rate: float = found["operations"] / found["seconds"]
    return mean * rate / 1e9


def _slowest(latencies: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Of several drives, the worst of each figure: those of all commands lie below."""
    if not latencies:
        return None
    return {name: max(one[name] for one in latencies) for name in latencies[0]}
