"""Queue pairs driven by warps of many lanes, simulated: divergence, early exits, whole warps, many pairs."""

from pathlib import Path

import pytest

from tests.native.programs import REPOSITORY, build, mutated, native, run

# Fortified, longjmp() takes a jump to another stack for an attack.
FLAGS = ["-DBAMQUERY_EXPLORE", "-DBAMQUERY_WARPS", "-U_FORTIFY_SOURCE"]


def built(folder: Path, headers: Path = REPOSITORY) -> Path:
    sources = [Path(__file__).with_name("warp_rings_test.cpp"), *native("queues/queue_memory")]
    return build(folder / "warp_rings_test", sources, flags=FLAGS, headers=headers)


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
    headers = mutated(tmp_path / "headers", "queues/queue_pair.hpp", right, wrong)
    done = run(built(tmp_path, headers), "60", "1")
    assert done.returncode != 0
    assert "not true" in done.stderr
