"""The rooms that faults are put into, and the tests that have to find them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutants import REPOSITORY

EQUIVALENT = Path(__file__).parent / "equivalent.toml"


@dataclass(frozen=True)
class Room:
    """Folders and files of sources, and what pytest is given."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self) -> list[str]:
        """The sources, from the repository's root."""
        found: set[Path] = set()
        for source in self.sources:
            path = REPOSITORY / source
            found |= {path} if path.is_file() else set(path.glob("*.py"))
        return sorted(path.relative_to(REPOSITORY).as_posix() for path in found)


_SLT = "tests/sql/test_slt.py::test_bamquery"

ROOMS = {
    "windows": Room(
        ("engine/windows", "engine/cpu/windows", "engine/cpu/vectors.py", "engine/operators/window"),
        (
            "tests/unit/engine/windows",
            "tests/unit/engine/cpu/windows",
            "tests/unit/engine/operators/window",
            "tests/conformance/test_window.py",
            "tests/conformance/test_large_partitions.py",
            f"{_SLT}[windows/windows]",
            "tests/sql/randomized/test_windows.py::test_windows",
        ),
    ),
    "joins": Room(
        ("engine/operators/join", "engine/cpu/keys/join_table.py"),
        (
            "tests/unit/engine/operators/join",
            "tests/unit/engine/cpu/keys",
            "tests/conformance/test_join.py",
            "tests/conformance/test_join_blocks.py",
            "tests/conformance/test_join_strategies.py",
            "tests/conformance/test_asof_join.py",
            f"{_SLT}[joins/joins]",
            f"{_SLT}[joins/asof_joins]",
        ),
    ),
    "aggregates": Room(
        ("engine/cpu/aggregates", "engine/aggregate_families.py", "engine/operators/aggregate"),
        (
            "tests/unit/engine/cpu/aggregates",
            "tests/unit/engine/operators/aggregate",
            "tests/conformance/test_aggregate.py",
            "tests/conformance/test_first_rows.py",
            "tests/conformance/test_grouping_sets.py",
            "tests/conformance/test_holistic.py",
            f"{_SLT}[aggregates/aggregates]",
            f"{_SLT}[aggregates/more_aggregates]",
            f"{_SLT}[aggregates/group_by]",
            f"{_SLT}[aggregates/group_by_few_strings]",
            f"{_SLT}[aggregates/grouping_sets]",
            "tests/sql/randomized/test_windows.py::test_groups",
        ),
    ),
    "transaction": Room(
        ("storage/tables/transaction.py", "storage/tables/writer.py", "storage/tables/manifest.py"),
        (
            "tests/unit/storage/tables",
            "tests/unit/storage/database/test_database.py",
            "tests/unit/storage/fragments/test_schema_evolution.py",
            # Replays of every crash take minutes, for each fault that nothing finds.
            "tests/faults/test_crash.py::test_the_recording_is_of_what_happened",
        ),
    ),
    "read_planner": Room(
        ("storage/read_planner", "storage/statistics/predicate.py", "storage/statistics/zone_map.py"),
        (
            "tests/unit/storage/read_planner",
            "tests/unit/storage/statistics",
            "tests/unit/engine/sources",
            "tests/unit/engine/operators/scan",
        ),
    ),
}


def equivalent_mutants() -> dict[str, str]:
    """Why no test can tell a mutant from what it was made of, by its key."""
    listed = tomllib.loads(EQUIVALENT.read_text())
    return {key: reason["why"] for reason in listed.get("reason", []) for key in reason["mutants"]}
