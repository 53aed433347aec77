"""Queue pairs driven by warps of many lanes, simulated: divergence, early exits, whole warps, many pairs."""

import shutil
from pathlib import Path

import pytest

from tests.native.programs import CORE, NATIVE, TESTS, build, run

# Fortified, longjmp() takes a jump to another stack for an attack.
FLAGS = ["-DBAMQUERY_EXPLORE", "-DBAMQUERY_WARPS", "-U_FORTIFY_SOURCE"]


def built(folder: Path, core: Path = CORE) -> Path:
    sources = [TESTS / "warp_rings_test.cpp", NATIVE / "queue_memory.cpp"]
    return build(folder / "warp_rings_test", sources, flags=FLAGS, core=core)


def test_random_warps(tmp_path: Path) -> None:
    done = run(built(tmp_path), "60", "1")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_many_random_warps(tmp_path: Path) -> None:
    done = run(built(tmp_path), "3000", "1000", timeout=3000)
    assert done.returncode == 0, done.stderr


MUTATIONS = {
    "lanes of a batch take one place": (
        "ticket = group.broadcast(ticket) + count_before(issuers, group.rank());",
        "ticket = group.broadcast(ticket);",
    ),
    "lanes that issue nothing take places": (
        "fetch_add(bit_count(issuers), kAcquireRelease);",
        "fetch_add(group.count(), kAcquireRelease);",
    ),
    "a warp waits for the first of its commands only": (
        "if (!group.any(pending)) return status;",
        "if (!group.all(pending)) return status;",
    ),
    "lanes look at the queue's health each for itself": (
        "if (group.any(broken()) || !try_lock(",
        "if (broken() || group.leads() || !try_lock(",
    ),
    "the tail passes entries that are not written": (
        "run = group.run(is_marked(tail + group.rank()));",
        "run = group.any(is_marked(tail + group.rank())) ? group.count() : 0;",
    ),
    "completions that are not there are consumed": (
        "const uint32_t run = group.run(outcome.phase() == phase(mine));",
        "const uint32_t run = group.any(outcome.phase() == phase(mine)) ? group.count() : 0;",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_random_warps_find_the_bug(name: str, tmp_path: Path) -> None:
    right, wrong = MUTATIONS[name]
    core = tmp_path / "core"
    shutil.copytree(CORE, core)
    text = (core / "queue_pair.hpp").read_text()
    assert text.count(right) == 1
    (core / "queue_pair.hpp").write_text(text.replace(right, wrong))
    done = run(built(tmp_path, core), "60", "1")
    assert done.returncode != 0
    assert "not true" in done.stderr
