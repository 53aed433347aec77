"""Which tables the clauses around the cursor see, found without a parser: what is typed is never finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from bamquery.shell.keywords import KEYWORDS
from bamquery.shell.scanner import Kind, Token, meaningful, scan
from bamquery.text.identifiers import fold_case

_SETS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT"})
_TABLE_FOLLOWS: Final = frozenset(
    {"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE", "SUMMARIZE", "OPTIMIZE", "COPY", "VIEW"}
)
_FROM_ENDS: Final = frozenset(
    {"WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "SELECT", "OFFSET", "SET", "VALUES"}
)
_ALIASES: Final = frozenset({"REPLACE", "FIRST", "LAST", "FORMAT", "ROW", "RANGE"})
"""Keywords that may be names all the same."""


@dataclass(slots=True)
class Group:
    """What is between two brackets, or the whole text: tokens and groups in their order."""

    start: int
    end: int
    items: list[Item] = field(default_factory=list)


Item: TypeAlias = Token | Group


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table, file or subquery in FROM.

    Attributes:
        name: the table's; empty for others.
        alias: what columns are qualified with: the name where nothing else is said.
        query: the subquery, or what WITH says of the name.
    """

    name: str
    alias: str
    query: Group | None = None


@dataclass(frozen=True, slots=True)
class CompletionScope:
    """What can be named at a place.

    Attributes:
        tables: the innermost first.
        queries: by folded name, what WITH names, with the names as they are written.
    """

    tables: tuple[TableReference, ...]
    queries: dict[str, tuple[str, Group]]


def scope_at(text: str, place: int) -> CompletionScope:
    """What a statement's text lets one name at a place in it."""
    # A word that is being typed is no table's alias yet.
    tokens = [t for t in meaningful(scan(text)[0]) if t.kind is not Kind.WORD or not t.start < place <= t.end]
    root = group_by_brackets(tokens, len(text))
    around = _enclosing_groups(root, place)
    queries = {name: query for group in around for name, query in _named_queries(group).items()}
    tables: list[TableReference] = []
    for group in reversed(around):
        for reference in references(_branch(group, place)):
            known = queries.get(fold_case(reference.name))
            tables.append(
                reference if known is None else TableReference(reference.name, reference.alias, known[1])
            )
    return CompletionScope(tuple(tables), queries)


def group_by_brackets(tokens: Sequence[Token], end: int) -> Group:
    """Tokens by the brackets that they are in; what is not closed goes on to the end."""
    root = Group(0, end)
    open_groups = [root]
    for token in tokens:
        if token.text == "(" and token.kind is Kind.OPERATOR:
            group = Group(token.end, end)
            open_groups[-1].items.append(group)
            open_groups.append(group)
        elif token.text == ")" and token.kind is Kind.OPERATOR:
            if len(open_groups) > 1:
                open_groups.pop().end = token.start
        else:
            open_groups[-1].items.append(token)
    return root


def references(items: Sequence[Item]) -> list[TableReference]:
    """The tables that a branch of a query reads, or that a statement is about."""
    found: list[TableReference] = []
    position, in_from = 0, False
    while position < len(items):
        word = _word(items[position])
        position += 1
        if word in _FROM_ENDS:
            in_from = False
        if word in _TABLE_FOLLOWS or (in_from and _is_token(items[position - 1], ",")):
            in_from = in_from or word in ("FROM", "JOIN")
            position = _reference(items, position, found)
    return found


def output_columns(group: Group) -> list[str | TableReference]:
    """Names that a subquery gives out, as far as they are written; a table stands for its columns."""
    branch = _branch(group, group.start)
    words = [_word(item) for item in branch]
    if "SELECT" not in words:
        return list(references(branch))
    names: list[str | TableReference] = []
    piece: list[Item] = []
    select = words.index("SELECT") + 1
    for item, word in [*zip(branch[select:], words[select:], strict=True), (None, "FROM")]:
        if item is None or word in _FROM_ENDS or word == "FROM" or _is_token(item, ","):
            last = piece[-1] if piece else None
            if isinstance(last, Token) and last.text == "*":
                names += references(branch)
            elif isinstance(last, Token) and last.kind in (Kind.WORD, Kind.NAME):
                names.append(plain_name(last))
            piece = []
            if item is None or not _is_token(item, ","):
                break
            continue
        piece.append(item)
    return names


def plain_name(token: Token) -> str:
    """A name without its quotes, if it has any."""
    if token.kind is Kind.NAME:
        return token.text[1:].removesuffix('"').replace('""', '"')
    return token.text


def _enclosing_groups(root: Group, place: int) -> list[Group]:
    """The groups that a place is in, the outermost first."""
    around = [root]
    while True:
        inner = next(
            (i for i in around[-1].items if isinstance(i, Group) and i.start <= place <= i.end), None
        )
        if inner is None:
            return around
        around.append(inner)


def _branch(group: Group, place: int) -> list[Item]:
    """Of what UNION and its like put together, the part that a place is in."""
    branch: list[Item] = []
    for item in group.items:
        if _word(item) in _SETS:
            if isinstance(item, Token) and item.start >= place:
                break
            branch = []
        else:
            branch.append(item)
    return branch


def _named_queries(group: Group) -> dict[str, tuple[str, Group]]:
    """What WITH names at the beginning of a group."""
    found: dict[str, tuple[str, Group]] = {}
    items = group.items
    if not items or _word(items[0]) != "WITH":
        return found
    for position, item in enumerate(items[:-1]):
        after = items[position + 1 : position + 4]
        words = [_word(one) for one in after]
        if isinstance(item, Token) and item.kind in (Kind.WORD, Kind.NAME) and "AS" in words[:2]:
            query = next((one for one in after[words.index("AS") + 1 :] if isinstance(one, Group)), None)
            if query is None and position + 4 < len(items):
                later = items[position + 4]
                query = later if isinstance(later, Group) and "MATERIALIZED" in words else None
            if query is not None:
                found[fold_case(plain_name(item))] = (plain_name(item), query)
    return found


def _reference(items: Sequence[Item], position: int, found: list[TableReference]) -> int:
    """Add the table that stands there, if one does; where to go on."""
    while position < len(items) and _word(items[position]) in ("LATERAL", "IF", "NOT", "EXISTS", "ONLY"):
        position += 1
    if position >= len(items):
        return position
    item = items[position]
    name, query = "", None
    if isinstance(item, Group):
        query = item
    elif item.kind is Kind.NAME or (item.kind is Kind.WORD and not _is_keyword(item)):
        name = plain_name(item)
        while position + 2 < len(items) and _is_token(items[position + 1], "."):
            after = items[position + 2]
            if not isinstance(after, Token) or after.kind not in (Kind.WORD, Kind.NAME):
                break
            name, position = plain_name(after), position + 2
    elif item.kind is not Kind.STRING:
        return position
    position += 1
    if name and position < len(items) and isinstance(items[position], Group):
        position += 1  # a table function's arguments, or the columns of INSERT INTO
    alias = name
    if position < len(items) and _word(items[position]) == "AS":
        position += 1
    if position < len(items):
        after = items[position]
        if isinstance(after, Token) and (
            after.kind is Kind.NAME or (after.kind is Kind.WORD and not _is_keyword(after))
        ):
            alias, position = plain_name(after), position + 1
    found.append(TableReference(name, alias, query))
    return position


def _word(item: Item) -> str:
    """A word in capitals; "" of anything else."""
    return item.text.upper() if isinstance(item, Token) and item.kind is Kind.WORD else ""


def _is_token(item: Item, text: str) -> bool:
    return isinstance(item, Token) and item.text == text


def _is_keyword(token: Token) -> bool:
    word = token.text.upper()
    return word in KEYWORDS and word not in _ALIASES
