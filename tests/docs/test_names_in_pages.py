"""What pages and rooms' READMEs name exists: files, modules, `make` targets; rooms' READMEs name modules."""

from __future__ import annotations

import functools
import re
from fnmatch import fnmatch
from itertools import product
from pathlib import Path, PurePosixPath

import pytest

from tests.docs.blocks import REPOSITORY
from tests.docs.prose import files, lines, tracked

ROOMS = ("bamquery", "driver", "engine", "storage", "queries")
SOURCES = (".py", ".cpp", ".hpp", ".cu", ".cuh")
OTHERS = {
    "./taxi",  # databases, as users have them
    "./new.bq",
    "01/02/2024",
    "Europe/Berlin",
    "LD/ST.E.STRONG.SM",  # an instruction of GPUs
    "XDG_CACHE_HOME/bamquery/kernels",
    ".cu",
    ".slt",
    "manifests/00000001.json",  # of a stored table
    "fragments/",
    "optimize.txt",
}
"""What looks like a path of the repository and is none."""
NO_MODULES = {
    "bamquery._native",  # the extension
    "bamquery.packed",  # the name of a type of Arrow's
    "bamquery.unreadable",  # another
}

_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[\w.{},*/-]+/[\w.{},*/-]*|[\w.*-]*\.(?:py|md|hpp|cpp|cu|cuh|slt|toml)")
_MODULE = re.compile(r"(?<![\w./-])(?:bamquery|tests)(?:\.\w+)+(?![\w/])")
_TARGET = re.compile(r"(?:^|[\s`(])make ((?!demo/)[a-z][a-z-]*)\b", re.MULTILINE)


def page_name(file: Path) -> str:
    return file.relative_to(REPOSITORY).as_posix()


PAGES = pytest.mark.parametrize("page", [page_name(file) for file in files()])


def alternatives(path: str) -> list[str]:
    """`a/{b,c}.py` written out."""
    pieces = re.split(r"\{([^}]*)\}", path)
    choices = [piece.split(",") if number % 2 else [piece] for number, piece in enumerate(pieces)]
    return ["".join(chosen) for chosen in product(*choices)]


@functools.cache
def known_paths() -> frozenset[str]:
    """All tracked files and their folders."""
    return frozenset(
        {*tracked(), *(str(folder) for file in tracked() for folder in PurePosixPath(file).parents)}
    )


@functools.cache
def exists(path: str, page: str) -> bool:
    """Whether a page's path is a tracked file or a folder of some, from the page's folder or one above it."""
    known = known_paths()
    bases = [*PurePosixPath(page).parents, *map(PurePosixPath, ("bamquery", "tests"))]
    for base in bases:
        wanted = str(base / path)
        if {wanted, f"{wanted}.py"} & known or (
            "*" in wanted and any(fnmatch(name, wanted) for name in known)
        ):
            return True
    return False


@PAGES
def test_paths_exist(page: str) -> None:
    missing = []
    for number, line in lines((REPOSITORY / page).read_text("utf-8")):
        for said in _CODE.findall(line):
            if said not in OTHERS and _PATH.fullmatch(said) and not said.startswith(("/", "~")):
                missing += [f"line {number}: {path}" for path in alternatives(said) if not exists(path, page)]
    assert not missing, "\n".join(missing)


def module_exists(name: str) -> bool:
    """Whether a dotted name is a module, or what one defines."""
    steps = name.split(".")
    if steps[0] == "bamquery" and len(steps) > 1 and steps[1] in ROOMS:
        steps = steps[1:]
    for size in range(len(steps), 0, -1):
        path = "/".join(steps[:size])
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if file in tracked():
                rest = steps[size:]
                text = (REPOSITORY / file).read_text("utf-8")
                return not rest or re.search(rf"\b{re.escape(rest[0])}\b", text) is not None
    return False


@PAGES
def test_modules_exist(page: str) -> None:
    text = (REPOSITORY / page).read_text("utf-8")
    assert {name for name in _MODULE.findall(text) if not module_exists(name)} - NO_MODULES == set()


@PAGES
def test_make_has_the_targets(page: str) -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    text = (REPOSITORY / page).read_text("utf-8")
    said = {
        name
        for code in re.findall(r"`[^`\n]+`|^```sh\n.*?^```$", text, re.MULTILINE | re.DOTALL)
        for name in _TARGET.findall(code)
    }
    assert said - targets == set()


def test_make_gives_programs_the_options_that_they_have() -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8").replace("\\\n", " ")
    commands = re.findall(r"python -m (tests[\w.]+)(.*)", makefile)
    assert commands
    unknown = [
        (module, option)
        for module, rest in commands
        for option in re.findall(r"(?<=\s)--[a-z-]+", rest)
        if not _has_option((REPOSITORY / f"{module.replace('.', '/')}.py").read_text("utf-8"), option)
    ]
    assert unknown == []


def _has_option(source: str, option: str) -> bool:
    """Written out, or made of a name."""
    return f'"{option}"' in source or ('f"--{' in source and f'"{option[2:]}"' in source)


def source_folders() -> list[str]:
    return sorted(
        {
            str(PurePosixPath(path).parent)
            for path in tracked()
            if path.split("/")[0] in ROOMS and path.endswith(SOURCES)
        }
    )


@pytest.mark.parametrize("folder", source_folders())
def test_a_room_s_readme_names_its_modules(folder: str) -> None:
    readme = REPOSITORY / folder / "README.md"
    assert readme.exists()
    text = readme.read_text("utf-8")
    said = [name for name in _CODE.findall(text) if "*" in name]
    names = {PurePosixPath(path) for path in tracked() if path.startswith(f"{folder}/")}
    assert {
        path.name
        for path in names
        if str(path.parent) == folder
        and path.suffix in SOURCES
        and not path.stem.startswith("__")
        and not re.search(rf"\b{path.stem}\b", text)
        and not any(fnmatch(path.name, name) for name in said)
    } == set()
