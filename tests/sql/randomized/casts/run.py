"""Casts and operators over extreme and random values, on BamQuery and DuckDB side by side.

    python -m tests.sql.randomized.casts.run --casts 1000000 --seed 1 [--jobs 2] [--device cuda:0]
    python -m tests.sql.randomized.casts.run --seed 17 --only casts          # one seed again, alone

With a GPU its answers are compared with those of our own CPU. A seed is the values of one type, cast to all
others, or two types and all operators over them. Differences that docs/sql.md does not list are shown, each
with the seed that finds it again, and fail the run; `--write-differences` adds them to the list.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from tests.sql.randomized.casts.casts import Casts
from tests.sql.randomized.casts.compare import Pair
from tests.sql.randomized.casts.findings import Class, Findings, known_classes, write
from tests.sql.randomized.casts.operators import Operators
from tests.sql.randomized.workers import Workers, check, stoppable

Part = Callable[[Pair, int, Findings], None]


def _casts(pair: Pair, seed: int, findings: Findings) -> None:
    Casts(pair, seed, findings).ask()


def _operators(pair: Pair, seed: int, findings: Findings) -> None:
    Operators(pair, seed, findings).ask()


PARTS: Final[Mapping[str, Part]] = MappingProxyType({"casts": _casts, "operators": _operators})
"""What a seed asks, part by part."""

Piece = tuple[int, str]
"""A seed, and the part of it that is asked."""


def pieces(seed: int, only: str | None = None) -> list[Piece]:
    """What one seed asks."""
    return [(seed, part) for part in PARTS if only in (None, part)]


def ask(piece: Piece, device: str = "cpu") -> Findings:
    """One piece of work."""
    findings = Findings()
    seed, part = piece
    with stoppable(), Pair(device) as pair:
        PARTS[part](pair, seed, findings)
        check()
    return findings


def run(casts: int, first: int, *, jobs: int = 1, device: str = "cpu", only: str | None = None) -> Findings:
    """As many as `casts` says, at least one seed."""
    total = Findings()
    listed = known_classes()
    seed, stopped = first, False
    while not stopped and (total.total < casts or seed == first):
        # As many seeds at once as are likely to be needed.
        share = total.total / (seed - first) if seed > first else casts
        seeds = range(seed, seed + max(jobs, int((casts - total.total) / max(share, 1))))
        workers: Workers[Piece, Findings] = Workers(jobs)
        work = [piece for number in seeds for piece in pieces(number, only)]
        for found in workers.results(partial(ask, device=device), work):
            total.add(found)
            if not total.first and total.new(listed):
                total.first = total.total
            if total.total >= casts:
                workers.stopped = True
        seed, stopped = seeds.stop, workers.stopped
    return total


def report(findings: Findings, new: list[Class]) -> str:
    """Counts, refusals and differences."""
    lines = [f"{findings.total} in all"]
    lines += [f"  {count:9} {what}" for what, count in findings.counts.most_common()]
    lines += [f"  refused {count}: {reason}" for reason, count in findings.refused.most_common(20)]
    lines.append(f"  {sum(findings.numbers.values())} differ, in {len(findings.examples)} classes that are")
    lines.append(f"  listed in docs/sql.md but for {len(new)}")
    lines += [
        f"NEW: {found.what} of {found.source}{' to ' + found.target if found.target else ''}, {found.kind}: "
        f"{found.ours}, DuckDB: {found.theirs}; {findings.examples[found]} ({findings.numbers[found]} times, "
        f"seed {findings.seeds[found]})"
        for found in new
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--casts", type=int, default=1, help="how many of all kinds, at least")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", choices=PARTS, help="this part alone")
    parser.add_argument("--write-differences", action="store_true", help="list what is found in docs/sql.md")
    arguments = parser.parse_args()
    started = time.perf_counter()
    findings = run(
        arguments.casts, arguments.seed, jobs=arguments.jobs, device=arguments.device, only=arguments.only
    )
    listed = known_classes()
    new = findings.new(listed)
    elapsed = time.perf_counter() - started
    print(report(findings, new))
    print(f"  {elapsed:.0f} s, {findings.total / elapsed:.0f} a second")
    if arguments.write_differences:
        write({**findings.examples, **listed})
        return 0
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
