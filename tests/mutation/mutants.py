"""Small faults that can be put into functions: where there is room for them, and loaded functions with one.

Only what is inside functions is changed, so that a fault is put in by exchanging the code of functions that
are loaded already. Left alone are assertions, `strict` of `zip` among them, messages, annotations, defaults
and decorators.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """One fault: the `number`-th that fits into a file."""

    file: str
    number: int
    line: int
    column: int
    statement: int
    """The line on which the statement begins that holds it."""
    source: str
    """The text of the line where it is."""
    before: str
    after: str

    @property
    def key(self) -> str:
        """What it is called as long as its line stays as it is."""
        return f"{self.file}: {self.source}: {self.before} -> {self.after} @{self.column}"

    def __str__(self) -> str:
        """Where and what, as it is printed."""
        return (
            f"{self.file}:{self.line}:{self.column}: {self.before}  ->  {self.after}\n        {self.source}"
        )


@dataclass(frozen=True)
class _Site:
    """A place in a tree for one fault."""

    owner: Any
    """A node, or a list of nodes, that holds `before` ..."""
    key: Any
    """... as the field, or in the place, of this name."""
    before: ast.expr | ast.stmt
    after: ast.AST
    statement: int

    def put_in(self) -> None:
        """Change the tree."""
        if isinstance(self.owner, list):
            self.owner[self.key] = self.after
        else:
            setattr(self.owner, self.key, self.after)


def list_mutants(file: str) -> list[Mutant]:
    """Every fault that fits into a file of the repository, in the order of its text."""
    text = (REPOSITORY / file).read_text()
    lines = text.splitlines()
    return [
        Mutant(
            file,
            number,
            site.before.lineno,
            site.before.col_offset - len(line) + len(line.lstrip()),
            site.statement,
            line.strip(),
            _shown(site.before),
            _shown(site.after),
        )
        for number, site in enumerate(_sites(ast.parse(text)))
        for line in [lines[site.before.lineno - 1]]
    ]


def apply(mutant: Mutant) -> None:
    """Put the fault into the loaded module's functions, for the rest of this process.

    Raises:
        LookupError: no loaded function has the place for it: the file is not the one that was imported.
    """
    tree = ast.parse((REPOSITORY / mutant.file).read_text())
    list(_sites(tree))[mutant.number].put_in()
    if not any(before != after for before, after in _exchange(mutant.file, tree)):
        raise LookupError(f"no loaded function has the place for {mutant}")


def record_lines(file: str, hit: Callable[[int], None]) -> None:
    """Have the loaded module's functions call `hit` with the line of each statement that is run."""
    tree = _Recording().visit(ast.parse((REPOSITORY / file).read_text()))
    _exchange(file, tree)
    vars(sys.modules[module_name(file)])["__hit__"] = hit


def module_name(file: str) -> str:
    """The name by which a file is imported: most rooms are links within the package."""
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith("bamquery") else f"bamquery.{name}"


def _shown(node: ast.AST) -> str:
    match node:
        case ast.Return(ast.IfExp(ast.Constant())):
            return "return None"
        case ast.If(ast.Constant()):
            return "nothing"
    words = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return words if len(words) <= 160 else f"{words[:160]} ..."


def _sites(tree: ast.Module) -> Iterator[_Site]:
    for function in _functions(tree):
        yield from _sites_below(function, function.lineno)


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.Lambda]:
    """The outermost functions, in the order of the text."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
        else:
            yield from _functions(child)


def _sites_below(node: ast.AST, line: int) -> Iterator[_Site]:
    """In a node that is part of the statement on a line."""
    for owner, key, child in _children(node):
        if isinstance(child, ast.stmt):
            line = child.lineno
        if isinstance(child, ast.stmt | ast.expr):
            for after in _replacements(node, key, child):
                yield _Site(owner, key, child, after, line)
        yield from _sites_below(child, line)


def _children(node: ast.AST) -> Iterator[tuple[Any, Any, ast.AST]]:
    """Every node directly below that faults are put into: what holds it, and where."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "args", "decorator_list", "returns"} and not isinstance(node, ast.Call):
            continue
        if isinstance(value, ast.AST):
            yield node, name, value
        elif isinstance(value, list):
            yield from ((value, place, item) for place, item in enumerate(value) if isinstance(item, ast.AST))


def _replacements(parent: ast.AST, key: Any, node: ast.stmt | ast.expr) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    match node:
        case ast.Compare(left, ops, comparators):
            for place, operator in enumerate(ops):
                changed = [*ops[:place], _COMPARISONS[type(operator)](), *ops[place + 1 :]]
                yield ast.Compare(left, changed, comparators)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield operand
        case ast.BinOp(left, operator, right) if not (_is_text(left) or _is_text(right)):
            if type(operator) in _OPERATORS:
                yield ast.BinOp(left, _OPERATORS[type(operator)](), right)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.AugAssign(target, operator, value) if type(operator) in _OPERATORS:
            yield ast.AugAssign(target, _OPERATORS[type(operator)](), value)
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            # What names a variable of the class or of a function around it goes on naming it: otherwise the
            # code would no longer fit its function.
            yield ast.Return(ast.IfExp(ast.Constant(True), ast.Constant(None), value))
    if isinstance(node, ast.stmt) and _can_go(node):
        yield ast.If(ast.Constant(False), [node], [])
    conditional = isinstance(parent, ast.If | ast.While | ast.IfExp) and node is parent.test
    conditional |= isinstance(parent, ast.comprehension) and node in parent.ifs
    if conditional and not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
        yield ast.UnaryOp(ast.Not(), node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _can_go(statement: ast.stmt) -> bool:
    """Whether it changes something that is there without it, or where the function goes on."""
    match statement:
        case ast.Expr(ast.Constant()):
            return False  # a docstring
        case ast.Assign(targets) | ast.Delete(targets):  # not of names: it only frees memory
            return all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            return True
    return False


class _Recording(ast.NodeTransformer):
    """Puts a call before each statement of a function."""

    def __init__(self) -> None:
        self._depth = 0

    def visit(self, node: ast.AST) -> Any:
        """Change what is inside functions."""
        function = isinstance(node, ast.FunctionDef | ast.Lambda)
        self._depth += function
        self.generic_visit(node)
        self._depth -= function
        if isinstance(node, ast.Lambda) and not self._depth:
            node.body = ast.Subscript(
                ast.Tuple([_hit(node.lineno), node.body], ast.Load()), ast.Constant(1), ast.Load()
            )
        if isinstance(node, ast.stmt) and self._depth:
            return [ast.Expr(_hit(node.lineno)), node]
        return node


def _hit(line: int) -> ast.Call:
    return ast.Call(ast.Name("__hit__", ast.Load()), [ast.Constant(line)], [])


def _exchange(file: str, tree: ast.Module) -> list[tuple[CodeType, CodeType]]:
    """Give the functions of a loaded module the code of a changed tree; returns what was exchanged."""
    path = REPOSITORY / file
    was = _outermost(compile(path.read_text(), path, "exec", dont_inherit=True))
    now = _outermost(compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True))
    assert len(was) == len(now)
    changes = dict(zip(was, now, strict=True))
    changed = []
    for function in loaded_functions(module_name(file)):
        code = function.__code__
        if code in changes:
            function.__code__ = changes[code]
            changed.append((code, changes[code]))
    return changed


@cache
def loaded_functions(module: str) -> list[FunctionType]:
    """The functions of an imported module, wherever they are held.

    They are looked up once, in the process that others are forked from: nothing is left to the collector of
    garbage there, which would write to each object's page and so have it copied in every process.
    """
    gc.unfreeze()  # as tests/conftest.py has hidden what was there before tests began
    functions = [f for f in gc.get_objects() if isinstance(f, FunctionType) and f.__module__ == module]
    gc.freeze()
    return functions


def _outermost(code: CodeType) -> list[CodeType]:
    """The code of functions that are in no other one."""
    found = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            is_function = bool(constant.co_flags & CO_NEWLOCALS)
            found += [constant] if is_function else _outermost(constant)
    return found
