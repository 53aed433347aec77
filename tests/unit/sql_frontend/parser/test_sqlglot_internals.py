"""sqlglot's private names that are relied on: all are listed, and the sqlglot installed has them."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenizerCore
from sqlglot.tokens import Tokenizer

from bamquery.sql_frontend.parser import (
    dialect,
    duckdb_syntax,
    literal_scanner,
    positioned_parser,
    strict_parser,
)
from bamquery.sql_frontend.parser.dialect import BamQueryDialect
from bamquery.sql_frontend.parser.sqlglot_internals import OVERRIDDEN, USED
from bamquery.sql_frontend.syntax import ast_nodes

MODULES = (dialect, duckdb_syntax, literal_scanner, positioned_parser, strict_parser, ast_nodes)
FOLDER = Path(inspect.getfile(dialect)).parent
# Attributes are there once there is an object.
SQLGLOT = {"Parser": DuckDBParser(dialect="duckdb"), "TokenizerCore": Tokenizer()._core}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def own_classes(module: ModuleType) -> Iterator[tuple[type, set[str]]]:
    """Classes of a module that extend one of sqlglot's, and the names written in them."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ClassDef):
            found = getattr(module, node.name)
            if any(base.__module__.startswith("sqlglot") for base in found.__mro__):
                yield found, set(written_names(node))


def written_names(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            yield statement.name
        elif isinstance(statement, ast.AnnAssign | ast.Assign):
            targets = [statement.target] if isinstance(statement, ast.AnnAssign) else statement.targets
            yield from (target.id for target in targets if isinstance(target, ast.Name))


CLASSES = {found.__name__: (found, names) for module in MODULES for found, names in own_classes(module)}


def has_in_sqlglot(found: type, name: str) -> bool:
    return any(name in vars(base) for base in found.__mro__ if base.__module__.startswith("sqlglot"))


@pytest.mark.parametrize("class_name", sorted(CLASSES))
def test_every_overridden_name_is_listed_and_every_listed_one_overridden(class_name: str) -> None:
    found, names = CLASSES[class_name]
    overridden = {name for name in names if is_private(name) and has_in_sqlglot(found, name)}
    assert overridden == set(OVERRIDDEN.get(class_name, ()))


def test_every_class_that_is_listed_is_there() -> None:
    assert set(OVERRIDDEN) <= set(CLASSES)


def used_names() -> Iterator[tuple[Path, str, str]]:
    """Private attributes in the parser's files but for super()'s: file, the object's name, attribute."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and isinstance(node.value, ast.Name):
                yield path, node.value.id, node.attr


def test_every_used_name_is_listed_and_every_listed_one_used() -> None:
    ours = {name for _, names in CLASSES.values() for name in names}
    used: dict[str, set[str]] = {"Parser": set(), "TokenizerCore": set()}
    for path, holder, name in used_names():
        where = "TokenizerCore" if path.stem == "literal_scanner" else "Parser"
        if name in ours and not hasattr(SQLGLOT[where], name):
            continue
        assert holder in ("self", "parser"), f"{path.name}: {holder}.{name}"
        used[where].add(name)
    for where, names in used.items():
        assert names ^ set(USED[where]) == set(), where


def test_functions_call_what_the_parser_has() -> None:
    """Theirs is a parameter, whose methods are renamed elsewhere."""
    called = {
        node.attr: f"{path.name}:{node.lineno}"
        for path in FOLDER.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "parser"
    }
    parser = strict_parser.StrictParser(dialect="duckdb")
    assert "_first_token" in called
    assert [place for name, place in called.items() if not hasattr(parser, name)] == []


@pytest.mark.parametrize("where", sorted(USED))
def test_sqlglot_has_every_name_that_is_used(where: str) -> None:
    assert [name for name in USED[where] if not hasattr(SQLGLOT[where], name)] == []


@pytest.mark.parametrize(
    ("class_name", "base"),
    [
        ("_Tokenizer", Tokenizer),
        ("NumberScanner", TokenizerCore),
        ("PositionedParser", DuckDBParser),
        ("ForeignSyntaxParser", DuckDBParser),
        ("StrictParser", DuckDBParser),
        ("Plus", exp.Func),
    ],
)
def test_sqlglot_has_every_name_that_is_overridden(class_name: str, base: type) -> None:
    assert [name for name in OVERRIDDEN[class_name] if not hasattr(base, name)] == []


def test_the_scanner_is_the_one_that_the_tokenizer_uses() -> None:
    assert isinstance(BamQueryDialect().tokenizer()._core, literal_scanner.NumberScanner)


def test_every_reason_is_one_line() -> None:
    for names in [*OVERRIDDEN.values(), *USED.values()]:
        assert all(0 < len(why) < 100 and "\n" not in why for why in names.values())
