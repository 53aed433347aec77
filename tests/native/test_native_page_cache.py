"""The page cache and arrays over a drive in memory, on threads, under the sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "driver" / "core"
FLAGS = ["-std=c++20", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


@pytest.mark.parametrize("sanitizers", ["thread", pytest.param("address,undefined", marks=pytest.mark.slow)])
def test_page_cache_under_sanitizers(sanitizers: str, tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not there to build with")
    flags = [*FLAGS, f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    probe = tmp_path / "probe.cpp"
    probe.write_text("int main() {}")
    if subprocess.run([compiler, *flags, probe, "-o", tmp_path / "probe"], check=False).returncode:
        pytest.skip(f"{compiler} has no runtime for -fsanitize={sanitizers}")
    program = tmp_path / "page_cache_test"
    test = Path(__file__).with_name("page_cache_test.cpp")
    subprocess.run([compiler, *flags, f"-I{CORE}", test, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "all page cache tests passed" in done.stdout


def build_warps(folder: Path, core: Path) -> Path:
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not there to build with")
    program = folder / "warp_cache_test"
    test = Path(__file__).with_name("warp_cache_test.cpp")
    flags = ["-std=c++20", "-O1", "-DBAMQUERY_EXPLORE", "-DBAMQUERY_WARPS", f"-I{core}", f"-I{test.parent}"]
    subprocess.run([compiler, *flags, test, "-o", program], check=True)
    return program


def test_warps_whose_lanes_diverge(tmp_path: Path) -> None:
    program = build_warps(tmp_path, CORE)
    done = subprocess.run([program, "100"], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_warps_that_do_not_wait_for_each_other_are_found_out(tmp_path: Path) -> None:
    core = tmp_path / "core"
    shutil.copytree(CORE, core)
    text = (core / "page_cache.hpp").read_text()
    right = "group.sync();  // The lane that owns the pin releases for all."
    assert text.count(right) == 1
    (core / "page_cache.hpp").write_text(text.replace(right, ""))
    program = build_warps(tmp_path, core)
    done = subprocess.run([program, "100"], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode != 0


def explorer(folder: Path, core: Path) -> Path:
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not there to build with")
    program = folder / "explore_page_cache"
    model = Path(__file__).with_name("explore_page_cache.cpp")
    flags = ["-std=c++20", "-O2", "-DBAMQUERY_EXPLORE", f"-I{core}", f"-I{model.parent}"]
    subprocess.run([compiler, *flags, model, "-o", program], check=True)
    return program


@pytest.mark.parametrize("models", ["quick", pytest.param("long", marks=pytest.mark.slow)])
def test_every_interleaving(models: str, tmp_path: Path) -> None:
    program = explorer(tmp_path, CORE)
    done = subprocess.run([program, models], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr


# What is left out, where, and a model that must see it.
MUTATIONS = {
    "insert without the right to": (
        "page_table.hpp",
        "(word & (kLocked | kInserting)) == 0 &&",
        "(word & kLocked) == 0 &&",
        "two-miss-one-page",
    ),
    "evict pinned pages": (
        "clock.hpp",
        "if (seen.pins() != 0 || seen.has(PageState::kUnsettled))",
        "if (seen.has(PageState::kUnsettled))",
        "two-pages-one-slot",
    ),
    "believe a key seen before the pin": (
        "page_cache.hpp",
        "if (seen.phase() >= Phase::kLoading && table_.read_key(slot) == key) {",
        "if (seen.phase() >= Phase::kLoading) {",
        "pages-come-and-go",
    ),
    "claim what was looked at before the lock": (
        "clock.hpp",
        "state.look().word == seen.word && table_.read_key(slot) == key && state.claim(seen);",
        "table_.read_key(slot) == key && state.claim(seen);",
        "slot-changes-under-a-look",
    ),
    "write to a page that is written back": (
        "page_cache.hpp",
        "if (seen.has(PageState::kCleaning)) {",
        "if (false) {",
        "two-write-and-one-flushes",
    ),
    "write back while somebody writes": (
        "page_slot.hpp",
        "state.has(PageState::kDirty) && state.writers() == 0 &&",
        "state.has(PageState::kDirty) &&",
        "write-and-flush",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_exploring_can_fail(name: str, tmp_path: Path) -> None:
    header, right, wrong, model = MUTATIONS[name]
    core = tmp_path / "core"
    shutil.copytree(CORE, core)
    text = (core / header).read_text()
    assert text.count(right) == 1
    (core / header).write_text(text.replace(right, wrong))
    program = explorer(tmp_path, core)
    done = subprocess.run([program, model], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1
    assert "not true" in done.stderr
