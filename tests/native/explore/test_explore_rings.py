"""Every interleaving of a few threads over the real queue pair; and that this finds bugs."""

from pathlib import Path

import pytest

from tests.native.programs import build, mutated, run

MODELS = Path(__file__).with_name("explore_rings.cpp")
# Fortified, longjmp() takes a jump to another stack for an attack.
EXPLORE = ["-DBAMQUERY_EXPLORE", "-U_FORTIFY_SOURCE", "-O2"]


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("explore") / "explore_rings"
    return build(program, [MODELS], flags=EXPLORE)


def test_small_models(explorer: Path) -> None:
    done = run(explorer, "quick")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_larger_models(explorer: Path) -> None:
    done = run(explorer, "long", timeout=3000)
    assert done.returncode == 0, done.stderr


MUTATIONS = {
    "a mark set while the lock was held is not looked for": (
        "queues/queue_pair.hpp",
        "more = group.any(is_marked(tail));",
        "more = false;",
        "two-share",
        "stuck",
    ),
    "the tail's lock is no lock": (
        "queues/queue_pair.hpp",
        "if (!try_lock(flags_.header().tail_lock, group)) return;",
        "",
        "two-share",
        "",
    ),
    "two may consume completions at once": (
        "queues/queue_pair.hpp",
        "if (group.any(broken()) || !try_lock(flags_.header().head_lock, group)) return 0;",
        "if (group.any(broken())) return 0;",
        "two-share",
        "",
    ),
    "a slot that missed its deadline is free at once": (
        "queues/queue_pair.hpp",
        "ref(flags_.header().missed).fetch_add(1, kRelaxed);",
        "release_slot(slot);",
        "deadline-and-next",
        "a slot in quarantine is nobody's",
    ),
    "a late completion leaves its slot in quarantine": (
        "queues/queue_pair.hpp",
        "if (late) release_slot(slot);",
        "",
        "deadline-and-next",
        "",
    ),
    "a command is raised before its deadline is settled": (
        "queues/queue_pair.hpp",
        "if (command.compare_exchange(word.word, given_up.word, kAcquireRelease)) {",
        "command.store(given_up.word, kRelease); {",
        "deadline-and-next",
        "",
    ),
    "a completion that comes twice is taken for the next command's": (
        "queues/queue_flags.hpp",
        "return (tag + depth) & 0xffffu;",
        "return tag + 0 * depth;",
        "duplicate-of-two",
        "the answer is the command's",
    ),
    "the phase never turns": (
        "queues/queue_pair.hpp",
        "return (counter & view_.depth) == 0;",
        "return counter + 1 != 0;",
        "once-round-the-ring",
        "",
    ),
    "a pair for reading issues writes": (
        "queues/queue_pair.hpp",
        "if (view_.read_only != 0 && ",
        "if (view_.read_only > 1 && ",
        "read-only",
        "a write is refused",
    ),
    "registers are written before entries are there": (
        "registers.hpp",
        "explore::fence();",
        "",
        "registers",
        "",
    ),
    "doorbells in registers are stored as if in memory": (
        "queues/queue_pair.hpp",
        "if (view_.registers != 0) {",
        "if (view_.registers > 1) {",
        "registers-of-two",
        "",
    ),
    "slots in quarantine come back with the lease": (
        "queues/queue_pool.hpp",
        "if (command.state() == CommandState::kQuarantined) continue;",
        "",
        "lease-late",
        "",
    ),
}


# One of each kind on every change; each takes a compilation.
QUICK = ["a slot that missed its deadline is free at once"]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MUTATIONS]
)
def test_explorer_finds_the_bug(name: str, tmp_path: Path) -> None:
    file, right, wrong, model, failure = MUTATIONS[name]
    headers = mutated(tmp_path / "headers", file, right, wrong)
    # The mutant may leave things unused.
    flags = [*EXPLORE, "-Wno-error"]
    program = build(tmp_path / "explore_rings", [MODELS], flags=flags, headers=headers)
    done = run(program, model)
    assert done.returncode == 1
    assert "not true: " + failure in done.stderr
