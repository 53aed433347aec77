"""The page cache and arrays over a drive in memory, on threads, under the sanitizers."""

from pathlib import Path

import pytest

from tests.native.programs import REPOSITORY, build, mutated, run, sanitizer


@pytest.mark.parametrize("sanitizers", ["thread", pytest.param("address,undefined", marks=pytest.mark.slow)])
def test_page_cache_under_sanitizers(sanitizers: str, tmp_path: Path) -> None:
    test = Path(__file__).with_name("page_cache_test.cpp")
    program = build(tmp_path / "page_cache_test", [test], flags=sanitizer(sanitizers, tmp_path))
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert "all page cache tests passed" in done.stdout


def build_warps(folder: Path, headers: Path = REPOSITORY) -> Path:
    test = Path(__file__).with_name("warp_cache_test.cpp")
    flags = ["-DBAMQUERY_EXPLORE", "-DBAMQUERY_WARPS", "-Wno-error"]
    return build(folder / "warp_cache_test", [test], flags=flags, headers=headers)


def test_warps_whose_lanes_diverge(tmp_path: Path) -> None:
    done = run(build_warps(tmp_path), "100")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_warps_that_do_not_wait_for_each_other_are_found_out(tmp_path: Path) -> None:
    right = "group.sync();  // The lane that owns the pin releases for all."
    headers = mutated(tmp_path / "headers", "page_cache/page_cache.hpp", right, "")
    done = run(build_warps(tmp_path, headers), "100")
    assert done.returncode != 0


def explorer(folder: Path, headers: Path = REPOSITORY) -> Path:
    model = Path(__file__).parent / "explore" / "explore_page_cache.cpp"
    flags = ["-O2", "-DBAMQUERY_EXPLORE", "-Wno-error"]  # a mutant may leave things unused
    return build(folder / "explore_page_cache", [model], flags=flags, headers=headers)


@pytest.mark.parametrize("models", ["quick", pytest.param("long", marks=pytest.mark.slow)])
def test_every_interleaving(models: str, tmp_path: Path) -> None:
    done = run(explorer(tmp_path), models)
    assert done.returncode == 0, done.stderr


# What is left out, where, and a model that must see it.
MUTATIONS = {
    "insert without the right to": (
        "page_cache/page_table.hpp",
        "(word & (kLocked | kInserting)) == 0 &&",
        "(word & kLocked) == 0 &&",
        "two-miss-one-page",
    ),
    "evict pinned pages": (
        "page_cache/clock.hpp",
        "if (seen.pins() != 0 || seen.has(PageState::kUnsettled))",
        "if (seen.has(PageState::kUnsettled))",
        "two-pages-one-slot",
    ),
    "believe a key seen before the pin": (
        "page_cache/page_cache.hpp",
        "if (seen.phase() >= Phase::kLoading && table_.read_key(slot) == key) {",
        "if (seen.phase() >= Phase::kLoading) {",
        "pages-come-and-go",
    ),
    "claim what was looked at before the lock": (
        "page_cache/clock.hpp",
        "state.look().word == seen.word && table_.read_key(slot) == key && state.claim(seen);",
        "table_.read_key(slot) == key && state.claim(seen);",
        "slot-changes-under-a-look",
    ),
    "write to a page that is written back": (
        "page_cache/page_cache.hpp",
        "if (seen.has(PageState::kCleaning)) {",
        "if (false) {",
        "two-write-and-one-flushes",
    ),
    "write back while somebody writes": (
        "page_cache/page_slot.hpp",
        "state.has(PageState::kDirty) && state.writers() == 0 &&",
        "state.has(PageState::kDirty) &&",
        "write-and-flush",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_exploring_can_fail(name: str, tmp_path: Path) -> None:
    header, right, wrong, model = MUTATIONS[name]
    headers = mutated(tmp_path / "headers", header, right, wrong)
    done = run(explorer(tmp_path, headers), model)
    assert done.returncode == 1
    assert "not true" in done.stderr
