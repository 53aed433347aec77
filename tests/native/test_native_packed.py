"""Packed columns at every level of instructions that the processor has, in a program of their own."""

import shutil
from pathlib import Path

import pytest

from tests.native.programs import REPOSITORY, build, large_memory, native, run, sanitizer, shared_work

PACKED = REPOSITORY / "storage" / "native" / "packed"
SOURCES = [
    Path(__file__).with_name("packed_test.cpp"),
    *(path for path in sorted(PACKED.rglob("*.cpp")) if "binding" not in path.stem),
    *native("crc32c"),
    *large_memory(),
    *shared_work(),
]


@pytest.mark.slow
def test_packed_columns_under_sanitizers(tmp_path: Path) -> None:
    flags = ["-ffp-contract=off", *sanitizer("address,undefined", tmp_path)]
    done = run(build(tmp_path / "packed_test", SOURCES, flags=flags))
    assert done.returncode == 0, done.stderr
    assert "all packed tests passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "return (uint64_t{1} << bits) - 1; }",
            "return ((uint64_t{1} << bits) - 1) & ~(1ull << bits / 2); }",
        ),
        ("0x1.47ae147ae147bp-7", "0x1.47ae147ae147cp-7"),
        ("{1e0, 1e1, 1e2,", "{1e0, 1e1, 0x1.9000000000001p+6,"),
    ],
    ids=["mask", "hundredth", "hundred"],
)
def test_one_wrong_bit_in_decoding_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "storage" / "core", tmp_path / "storage" / "core")
    header = tmp_path / "storage" / "core" / "packed_vector.hpp"
    text = header.read_text()
    assert text.count(right) == 1
    header.write_text(text.replace(right, wrong))
    program = build(tmp_path / "packed_test", SOURCES, flags=["-ffp-contract=off"], headers=tmp_path)
    done = run(program)
    assert done.returncode != 0
