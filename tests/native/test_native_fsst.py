"""Strings as codes of symbols, in a program of their own."""

import shutil
from pathlib import Path

import pytest

from tests.native.programs import REPOSITORY, build, large_memory, native, run, sanitizer, shared_work

PACKED = REPOSITORY / "storage" / "native" / "packed"
PROGRAM = Path(__file__).with_name("fsst_test.cpp")
CODES = [
    *(PACKED / f"{name}.cpp" for name in ("codes", "codes_x86", "simd_level")),
    *native("crc32c"),
    *large_memory(),
    *shared_work(),
]


def own_sources(folder: Path) -> list[Path]:
    return [path for path in sorted((folder / "fsst").glob("*.cpp")) if "binding" not in path.stem]


@pytest.mark.slow
def test_strings_under_sanitizers(tmp_path: Path) -> None:
    flags = sanitizer("address,undefined", tmp_path)
    sources = [PROGRAM, *own_sources(PACKED), *CODES]
    done = run(build(tmp_path / "fsst_test", sources, flags=flags))
    assert done.returncode == 0, done.stderr
    assert "all tests of strings passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("symbol_decoder.cpp", "if (has_escape(four)) {", "if (has_escape(four & 0x00ffffffu)) {"),
        ("pack_strings.cpp", "has_nulls ? code << 1 |", "has_nulls ? (code ^ 64) << 1 |"),
        ("matcher.cpp", "code, match.length};", "code, 8};"),
    ],
    ids=["escape", "end", "symbol"],
)
def test_a_planted_error_is_found(file: str, right: str, wrong: str, tmp_path: Path) -> None:
    folder = tmp_path / "storage" / "native" / "packed"
    shutil.copytree(PACKED / "fsst", folder / "fsst")
    text = (folder / "fsst" / file).read_text()
    assert text.count(right) == 1
    (folder / "fsst" / file).write_text(text.replace(right, wrong))
    sources = [PROGRAM, *own_sources(folder), *CODES]
    assert run(build(tmp_path / "fsst_test", sources, headers=tmp_path)).returncode != 0
