"""What docstrings, comments and READMEs name in backquotes is there: renames take along what speaks of it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.docs.blocks import REPOSITORY
from tests.docs.prose import tracked

ROOMS = ("bamquery/", "driver/", "engine/", "storage/", "queries/")
OTHERS = {
    "FileMetaData",  # Parquet's
    "FlightSql.proto",
    "RowGroupMetaData.column",
    "SqlInfo",  # Flight SQL's
    "cudaMemcpyBatchAsync",
    "data_x",
    "dbgen",  # of TPC-H
    "Path.open",  # of pathlib
    "reset_index",  # of pandas
}
"""Names of other libraries and formats."""

_NAME = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?`")
_WORD = re.compile(r"\w+")
# Comments and docstrings; other strings, so that no `#` within is a comment; names. `tokenize` takes longer.
_TOKEN = re.compile(
    r'''(?P<said>\#[^\n]*|[rbfRBF]*""".*?""")|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\b[^\W\d]\w*''',
    re.DOTALL,
)
_CLASS_AND_MEMBER = re.compile(r"(?:.*\.)?([A-Z]\w*)\.(\w+)")
_CODE = (".py", ".cpp", ".hpp", ".cu", ".pyi", ".sql", ".toml", ".txt")


@dataclass
class Sources:
    """All text of the repository's code.

    Attributes:
        said: each module's docstrings and comments, with the line that they begin in; READMEs.
        words: all identifiers, words of other strings, and names of files and folders.
        members: what each class has of its own; classes of one name go together.
        bases: the names of their bases.
    """

    said: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    words: set[str] = field(default_factory=set)
    members: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    bases: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def read_module(self, path: str, text: str) -> None:
        """Take in a module."""
        line, at = 1, 0
        for found in _TOKEN.finditer(text):
            if found["said"]:
                line, at = line + text.count("\n", at, found.start()), found.start()
                self.said[path].append((line, found["said"]))
            else:
                self.words.update(_WORD.findall(found[0]))
        for node in statements(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                self.members[node.name].update(members(node))
                self.bases[node.name].update(filter(None, map(base_name, node.bases)))

    def has(self, name: str, member: str) -> bool:
        """Whether a class, or one that it derives from, has a member; others' classes have everything."""
        if name not in self.members or member in self.members[name]:
            return True
        known = [base for base in self.bases[name] if base in self.members and base != name]
        return any(self.has(base, member) for base in known)

    def is_there(self, said: str) -> bool:
        """Whether a name in backquotes is one of code."""
        if said in OTHERS:
            return True
        if any(word not in self.words for word in said.split(".")):
            return False
        found = _CLASS_AND_MEMBER.fullmatch(said)
        return found is None or self.has(found[1], found[2])

    def missing(self, path: str) -> list[str]:
        """What a module speaks of and is not there."""
        return [
            f"{path}: line {line}: {name}"
            for line, text in self.said[path]
            for name in _NAME.findall(text)
            if not self.is_there(name)
        ]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Those within a module or statement, a tenth of what `ast.walk` goes through."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for below in getattr(node, block, ()):
            yield below
            yield from statements(below)


def members(node: ast.ClassDef) -> Iterator[str]:
    for below in statements(node):
        match below:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from filter(None, map(target_name, targets))
            case ast.AnnAssign(target=target):
                yield from filter(None, [target_name(target)])


def target_name(target: ast.expr) -> str | None:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def base_name(base: ast.expr) -> str | None:
    return target_name(base.value if isinstance(base, ast.Subscript) else base)


@pytest.fixture(scope="module")
def sources() -> Sources:
    found = Sources()
    for path in sorted(tracked()):
        found.words.update(re.split(r"[/.]", path))
        if path.endswith("README.md"):
            found.said[path].append((1, (REPOSITORY / path).read_text("utf-8")))
        if path.endswith(".py") and path.startswith(ROOMS):
            found.read_module(path, (REPOSITORY / path).read_text("utf-8"))
        elif path.endswith(_CODE):
            found.words.update(_WORD.findall((REPOSITORY / path).read_text("utf-8", "replace")))
    return found


def test_what_is_spoken_of_is_there(sources: Sources) -> None:
    missing = [
        line for path in list(sources.said) if path.startswith(ROOMS) for line in sources.missing(path)
    ]
    assert not missing, "\n".join(missing)


def test_what_is_not_there_is_found() -> None:
    found = Sources()
    found.read_module(
        "m.py", 'class A:\n    x: int\nclass B(A):\n    """See `A.y`, `B.x`, `B` and `gone`."""  # `A.x`\n'
    )
    found.words.add("y")
    assert found.missing("m.py") == ["m.py: line 4: A.y", "m.py: line 4: gone"]
