"""Programs of tests are compiled once, whoever asks for them; again where what they are made of changed."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import compiled_programs
from tests.compiled_programs import compile_program, precompile
from tests.native import programs

COMPILER = """#!/bin/sh
# Writes down what it is asked for; programs are their sources' text.
echo "$*" >> {log}
for argument; do
  case "$argument" in
    -v) echo "version 1" >&2; exit ;;
    *.cpp | *.hpp | *.o) [ "$output" = -o ] || source="$argument" ;;
    -E) shows=yes ;;
  esac
  output="$argument"
done
grep -q '#error' "$source" && exit 1
if [ -n "$shows" ]; then cat "$source"; else sleep 0.2; cp "$source" "$output"; fi
"""


@pytest.fixture(autouse=True)
def _nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(compiled_programs, "_KEPT", tmp_path / "kept")
    caches = (compiled_programs._forget_unused, compiled_programs._version)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def compiler(tmp_path: Path) -> str:
    path = tmp_path / "compiler"
    path.write_text(COMPILER.format(log=tmp_path / "log"))
    path.chmod(0o700)
    return str(path)


def made(tmp_path: Path) -> list[str]:
    """What the compiler has made: programs and headers."""
    return [line for line in (tmp_path / "log").read_text().splitlines() if " -o " in line]


def test_those_who_want_the_same_at_a_time_compile_it_once(compiler: str, tmp_path: Path) -> None:
    source = tmp_path / "a.cpp"
    source.write_text("one")
    with ThreadPoolExecutor(4) as pool:
        programs = list(
            pool.map(lambda n: compile_program(compiler, ["-O1"], [source], tmp_path / f"a{n}"), range(4))
        )
    assert [program.read_text() for program in programs] == ["one"] * 4
    assert len(made(tmp_path)) == 1


def test_programs_share_what_is_made_of_a_source(compiler: str, tmp_path: Path) -> None:
    sources = [tmp_path / f"{name}.cpp" for name in "abc"]
    for source in sources:
        source.write_text(source.name)
    compile_program(compiler, ["-O1"], sources[:2], tmp_path / "first")
    compile_program(compiler, ["-O1"], sources[1:], tmp_path / "second")
    compiled = [line.split()[2] for line in made(tmp_path) if " -c " in line]
    assert compiled == [str(source) for source in sources]
    assert len(made(tmp_path)) == 5  # two are linked


@pytest.mark.parametrize("what", ["source", "flags"])
def test_what_changed_is_compiled_again(what: str, compiler: str, tmp_path: Path) -> None:
    source, flags = tmp_path / "a.cpp", ["-O1"]
    source.write_text("one")
    compile_program(compiler, flags, [source], tmp_path / "a")
    if what == "source":
        source.write_text("two")
    else:
        flags = ["-O2"]
    found = compile_program(compiler, flags, [source], tmp_path / "a")
    assert found.read_text() == source.read_text()
    assert len(made(tmp_path)) == 2


def test_what_did_not_compile_is_tried_again(compiler: str, tmp_path: Path) -> None:
    source = tmp_path / "a.cpp"
    source.write_text("#error")
    for _ in range(2):
        with pytest.raises(compiled_programs.subprocess.CalledProcessError):
            compile_program(compiler, [], [source], tmp_path / "a")
    source.write_text("one")
    assert compile_program(compiler, [], [source], tmp_path / "a").read_text() == "one"


def test_a_header_is_read_once_and_looked_for_first(compiler: str, tmp_path: Path) -> None:
    header, source = Path("room", "a.hpp"), tmp_path / "a.cpp"
    (tmp_path / "room").mkdir()
    (tmp_path / header).write_text("header")
    source.write_text(f'#include "{header}"')
    for number in range(2):
        folder = precompile(compiler, ["-O1"], tmp_path, header, tmp_path / f"precompiled{number}")
        assert (folder / "room" / "a.hpp.gch").read_text() == "header"
    compile_program(compiler, ["-O1", f"-iquote{tmp_path}"], [source], tmp_path / "a", precompiled=folder)
    first, second = made(tmp_path)
    assert "c++-header" in first
    assert second.index(f"-iquote{folder}") < second.index(f"-iquote{tmp_path} ")


def test_a_precompiled_header_that_changed_makes_another_program(tmp_path: Path) -> None:
    header, source = Path("room", "answer.hpp"), tmp_path / "elsewhere" / "a.cpp"
    for folder in ("room", "elsewhere"):
        (tmp_path / folder).mkdir()
    source.write_text(f'#include "{header}"\nint main() {{ return answer; }}\n')
    flags = ["-O0", f"-iquote{tmp_path}"]
    answers: list[int] = []
    for number in (3, 4, 3):
        (tmp_path / header).write_text(f"inline int answer = {number};\n")
        found = precompile(programs.compiler(), flags, tmp_path, header, tmp_path / f"made{len(answers)}")
        program = compile_program(programs.compiler(), flags, [source], tmp_path / "a", precompiled=found)
        answers.append(subprocess.run([program], check=False).returncode)
    assert answers == [3, 4, 3]
    kept = [path.suffix for path in (tmp_path / "kept").iterdir()]
    assert len(kept) - kept.count(".lock") == 4  # two headers, two programs
