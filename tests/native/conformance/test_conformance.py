"""The conformance suite over software controllers; that it finds what is wrong with one, or with the core."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.native.programs import (
    REPOSITORY,
    build,
    joined,
    mutated,
    native,
    run,
    sanitizer,
    software_controller,
)

CHECKS = [
    Path(__file__).with_name(f"{name}.cpp")
    for name in (
        "software_main",
        "runner",
        "software_backend",
        "space_checks",
        "transfer_checks",
        "ring_checks",
        "thread_checks",
        "status_checks",
        "client_checks",
        "cache_checks",
        "array_checks",
        "stop_checks",
    )
]
DRIVER = [
    *software_controller(),
    *native("queues/cpu_queue_client", "page_cache/cpu_page_cache", "page_cache/cpu_array"),
]
# Those whose every command is a system call, or another thread's turn, go less deep.
BACKENDS = {
    "memory": ["--threads", "0", "--block", "512"],
    "memory-threads": ["--threads", "2", "--block", "512", "--depth", "4096"],
    "mapped": ["--backing", "mapped", "--threads", "1", "--block", "4096", "--depth", "4096"],
    "mapped-small": ["--backing", "mapped", "--threads", "0", "--block", "512", "--depth", "1024"],
    "direct": ["--backing", "direct", "--threads", "0", "--block", "4096", "--depth", "128"],
    "direct-threads": ["--backing", "direct", "--threads", "2", "--block", "4096", "--depth", "64"],
}
RESULT = re.compile(r"(?P<kind>ok|FAIL|skip) [\w-]+?/(?P<name>[\w./-]+): ?(?P<detail>.*)")


def compiled(folder: Path, flags: Sequence[str] = (), headers: Path = REPOSITORY) -> Path:
    source = joined([*CHECKS, *DRIVER], folder)
    return build(folder / "conformance", [source], flags=["-O1", *flags], headers=headers)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("conformance"))


def has_direct_reads(folder: Path) -> bool:
    try:
        (folder / "probe").touch()
        os.close(os.open(folder / "probe", os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


def results(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    """Kind and detail by the check's name."""
    found = {}
    for line in done.stdout.splitlines():
        match = RESULT.fullmatch(line)
        assert match is not None, line
        found[match["name"]] = (match["kind"], match["detail"])
    return found


def failures(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [name for name, (kind, _) in results(done).items() if kind == "FAIL"]


def digests(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What the arrays' checks saw."""
    details = {name: detail for name, (_, detail) in results(done).items() if detail.startswith("digest ")}
    return {name: detail.split()[1].rstrip(",") for name, detail in details.items()}


LONG = {"memory-threads", "mapped-small", "direct-threads"}


@pytest.mark.always
@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in BACKENDS]
)
def test_conforms(program: Path, backend: str, tmp_path: Path) -> None:
    if backend.startswith("direct") and not has_direct_reads(tmp_path):
        pytest.skip("no direct reads here")
    done = run(program, "--folder", tmp_path, *BACKENDS[backend])
    assert (done.returncode, failures(done)) == (0, []), done.stdout + done.stderr
    found = results(done)
    assert len(found) >= 38
    assert [name for name, (kind, _) in found.items() if kind == "skip"] == []
    one = run(program, "--folder", tmp_path, "--filter", "array/")
    assert len(digests(done)) == 5
    assert digests(one) == digests(done)


@pytest.mark.parametrize("sanitizers", ["thread", pytest.param("address,undefined", marks=pytest.mark.slow)])
def test_conforms_under_sanitizers(sanitizers: str, tmp_path: Path) -> None:
    program = compiled(tmp_path, sanitizer(sanitizers, tmp_path))
    for backend in ("memory", "memory-threads"):
        options = [*BACKENDS[backend], "--depth", "64", "--effort", "0.3", "--rounds", "2"]
        done = run(program, "--folder", tmp_path, *options, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_conforms_for_long(program: Path, tmp_path: Path) -> None:
    seed = str(int.from_bytes(os.urandom(4)))
    backends = BACKENDS if has_direct_reads(tmp_path) else ["memory", "memory-threads", "mapped"]
    for backend in backends:
        options = [*BACKENDS[backend], "--seed", seed, "--effort", "10", "--rounds", "100"]
        done = run(program, "--folder", tmp_path, *options, timeout=1200)
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"


# What a controller does wrong, and checks that must see it.
PLANTS = {
    "byte": {
        "rings/transfers",
        "rings/depths",
        "rings/shared-threads",
        "client/sizes",
        "cache/pages",
        "array/pattern",
    },
    "tear": {"rings/writes", "client/read-back", "array/model-8", "array/threads"},
    "error": {"rings/depths", "rings/leased-threads"},
    "lose": {"rings/depths", "rings/leased-threads"},
    "late-flush": {"client/read-back", "array/model-1"},
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_wrong_controller_is_found_out(program: Path, plant: str) -> None:
    wanted = [option for check in sorted(PLANTS[plant]) for option in ("--filter", check)]
    options = ["--plant", plant, "--patience", "0.5", "--depth", "1024", "--threads", "0"]
    done = run(program, *options, *wanted)
    assert set(failures(done)) == PLANTS[plant], done.stdout
    assert done.returncode == len(PLANTS[plant])


def test_what_does_not_end_is_ended(program: Path) -> None:
    done = run(program, "--plant", "lose", "--filter", "rings/depths", "--deadline", "1", "--patience", "100")
    assert done.returncode == 1
    assert "FAIL memory-512-1/rings/depths: not over after 1 s" in done.stdout


# What is left out of the core, where, and a check that must see it.
MUTATIONS = {
    "two pages are one": (
        "queues/queue_pair.hpp",
        "entry.prp1 + kPrpPageBytes;",
        "entry.prp1;",
        "rings/transfers",
    ),
    "three pages are two": (
        "queues/queue_pair.hpp",
        "if (bytes > 2 * kPrpPageBytes) {",
        "if (bytes > 3 * kPrpPageBytes) {",
        "rings/transfers",
    ),
    "one list for all slots": (
        "queues/queue_pair.hpp",
        "static_cast<uint64_t>(slot) * view_.prp_list_bytes;",
        "static_cast<uint64_t>(slot / 2 * 2) * view_.prp_list_bytes;",
        "rings/slot-sizes",
    ),
    "one block more": (
        "queues/queue_pair.hpp",
        "static_cast<uint16_t>(request.blocks - 1);",
        "static_cast<uint16_t>(request.blocks);",
        "rings/transfers",
    ),
    "the phase never turns": (
        "queues/queue_pair.hpp",
        "return (counter & view_.depth) == 0;",
        "return counter + 1 != 0;",
        "rings/depths",
    ),
    "completions are never given back": (
        "queues/queue_pair.hpp",
        "doorbell(view_.head_doorbell).store(head & (view_.depth - 1), kRelease);",
        "",
        "rings/depths",
    ),
    "commands of a slot have one tag": (
        "queues/queue_flags.hpp",
        "return (tag + depth) & 0xffffu;",
        "return tag + 0 * depth;",
        "rings/tags",
    ),
    "each command its doorbell": (
        "queues/queue_pair.hpp",
        "if constexpr (Group::kRingsDoorbell) move_tail(group);",
        "move_tail(group);",
        "rings/doorbells",
    ),
    "errors are not counted": (
        "queues/queue_pair.hpp",
        "count(header.errors, bit_count(errors));",
        "(void)errors;",
        "statuses/counted",
    ),
    "what is larger than a slot is issued": (
        "queues/queue_pair.hpp",
        "if (bytes > view_.slot_bytes) return status::kTooLarge;",
        "",
        "statuses/core",
    ),
    "written pages are not dirty": (
        "page_cache/page_cache.hpp",
        "if (access == Access::kWrite && !seen.has(PageState::kDirty)) state(slot).set_dirty();",
        "",
        "array/model-8",
    ),
    "the last page is as long as others": (
        "array/array_extent.hpp",
        "static_cast<uint32_t>(left < blocks ? left : blocks)",
        "static_cast<uint32_t>(left < blocks ? blocks : blocks)",
        "array/last-page",
    ),
    "an element is two": (
        "array/element.hpp",
        "AtomicRef<Word, Scope::kDevice>(word).store(__builtin_bit_cast(Word, value), kRelaxed);",
        "auto* const bytes = reinterpret_cast<volatile byte*>(&word);\n"
        "  for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = reinterpret_cast<const byte*>(&value)[i];",
        "array/torn",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_wrong_core_is_found_out(name: str, tmp_path: Path) -> None:
    header, right, wrong, check = MUTATIONS[name]
    headers = mutated(tmp_path / "headers", header, right, wrong)
    program = compiled(tmp_path, ["-O0", "-Wno-error"], headers)  # a mutant may leave things unused
    done = run(
        program, "--threads", "2", "--depth", "1024", "--patience", "1", "--effort", "10", "--filter", check
    )
    assert check in failures(done), done.stdout
