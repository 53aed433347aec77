"""What could follow in a statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from bamquery.shell.completion.names import CatalogSnapshot, Column, Names
from bamquery.shell.completion.paths import paths
from bamquery.shell.completion.ranking import Candidate, rank
from bamquery.shell.completion.scope import (
    CompletionScope,
    TableReference,
    output_columns,
    plain_name,
    scope_at,
)
from bamquery.shell.keywords import BEGINNINGS, COMMON, CONSTANTS, KEYWORDS, TYPES
from bamquery.shell.scanner import Kind, Token, meaningful, scan
from bamquery.text.identifiers import fold_case

_COLUMN, _ALIAS, _TABLE, _COMMON, _ELSEWHERE, _FUNCTION, _KEYWORD = range(7)
"""Kinds, in the order in which they are offered where they fit as well."""

_TABLE_BEFORE: Final = frozenset(
    {"FROM", "JOIN", "INTO", "TABLE", "DESCRIBE", "SUMMARIZE", "OPTIMIZE", "VIEW"}
)
_FILE_BEFORE: Final = frozenset({"FROM", "JOIN", "TO", "COPY"})
_READERS: Final = re.compile(r"read_\w+|\w+_scan", re.IGNORECASE)
_PLAIN_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_DEEPEST: Final = 4
"""Subqueries in each other whose columns are looked for."""


class SqlCandidates:
    """Knows the dialect by heart, and tables by `Names`."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._functions: list[Candidate] = []
        self._table_functions: list[Candidate] = []

    def complete_at(
        self, text: str, place: int, *, tables_first: bool = False
    ) -> tuple[list[Candidate], str]:
        """What could stand at a place of a statement, and how much of it is typed already.

        `tables_first`: whether the text begins with a table, as behind `.describe`.
        """
        tokens, state = scan(text[:place])
        last = tokens[-1] if tokens else None
        if last is not None and last.kind is Kind.COMMENT and (state.kind or place == last.end):
            return [], ""
        if state.kind is Kind.STRING and last is not None:
            return self._complete_string(tokens, last)
        typed = (
            last if last is not None and _is_name(last) and (last.kind is Kind.WORD or state.kind) else None
        )
        before = meaningful(tokens[:-1] if typed is not None else tokens)
        word = "" if typed is None else plain_name(typed)
        shown = "" if typed is None else typed.text
        found = self._candidates(before, text, place, tables_first)
        if typed is not None and typed.kind is Kind.NAME:
            found = [
                Candidate(_quote_name(c.name), c.name, c.meta, c.kind)
                for c in found
                if c.kind in (_COLUMN, _TABLE)
            ]
        elif word.islower():
            found = [_lower(c) if c.kind in (_COMMON, _KEYWORD) else c for c in found]
        best = rank(found, word)
        # What is typed in full needs no menu.
        if len(best) == 1 and best[0].text == shown:
            return [], shown
        return best, shown

    def opens_unasked(self, before: str) -> bool:
        """Whether the menu comes before a letter is typed: behind a dot or an open quote of a file."""
        return before[-1:] == "." or bool(re.search(r"\b(?:from|join|to)\s+'[^']*$", before, re.IGNORECASE))

    def functions(self, *, calls: bool = True) -> list[Candidate]:
        """All functions; `calls`: with the bracket."""
        if not self._functions:
            self._read_functions()
        return (
            self._functions if calls else [Candidate(c.name, c.name, c.meta, c.kind) for c in self._functions]
        )

    def _complete_string(self, tokens: Sequence[Token], last: Token) -> tuple[list[Candidate], str]:
        before = meaningful(tokens[:-1])
        words = [token.text.upper() for token in before[-3:]]
        is_file = bool(words) and words[-1] in _FILE_BEFORE
        if len(words) > 1 and words[-1] in ("(", "[", ","):
            opened = [token.text for token in before if token.kind is Kind.WORD]
            is_file = bool(opened) and _READERS.fullmatch(opened[-1]) is not None
        if not is_file or not last.text.startswith("'"):
            return [], ""
        typed = last.text[1:].replace("''", "'")
        found = [Candidate(c.text.replace("'", "''"), c.name, c.meta, c.kind) for c in paths(typed)]
        return found, last.text[1:]

    def _candidates(
        self, before: Sequence[Token], text: str, place: int, tables_first: bool
    ) -> list[Candidate]:
        catalogue = self._names.catalogue
        words = [token.text.upper() if token.kind is Kind.WORD else token.text for token in before]
        if not words:
            beginnings = [Candidate(w, w, "", _KEYWORD) for w in BEGINNINGS]
            return [*_tables(catalogue), *beginnings] if tables_first else beginnings
        if words[-1] == ".":
            return self._columns_of_qualifier(before, scope_at(text, place))
        if words[0] in ("SET", "RESET") and len(words) <= 3:
            return _settings(words)
        scope = scope_at(text, place)
        if words[-1] in _TABLE_BEFORE or (words[-1] == "," and _is_between_tables(words)):
            queries = [Candidate(_sql_name(n), n, "WITH", _TABLE) for n, _ in scope.queries.values()]
            self.functions()
            more = [] if words[-1] in ("INTO", "TABLE", "VIEW") else self._table_functions
            keywords = [
                Candidate(w, w, "", _KEYWORD) for w in ("IF EXISTS", "IF NOT EXISTS", "SELECT", "LATERAL")
            ]
            return [*queries, *_tables(catalogue), *more, *keywords]
        found = [c for reference in scope.tables for c in self._columns_of(reference, qualify=False)]
        found += [
            Candidate(_sql_name(t.alias), t.alias, t.name if t.name != t.alias else "table", _ALIAS)
            for t in scope.tables
            if t.alias
        ]
        if not scope.tables:
            found += [
                Candidate(_sql_name(n), n, where, _ELSEWHERE) for n, where in catalogue.all_columns.items()
            ]
            found += _tables(catalogue, _ELSEWHERE)
        keywords = [
            Candidate(w, w, "", _COMMON if w in COMMON else _KEYWORD) for w in sorted(KEYWORDS | CONSTANTS)
        ]
        types = [Candidate(w, w, "type", _KEYWORD) for w in sorted(TYPES)]
        return [*_drop_repeated(found), *self.functions(), *keywords, *types]

    def _columns_of_qualifier(self, before: Sequence[Token], scope: CompletionScope) -> list[Candidate]:
        if len(before) < 2 or not _is_name(before[-2]):
            return []
        qualifier = fold_case(plain_name(before[-2]))
        for reference in scope.tables:
            if fold_case(reference.alias) == qualifier:
                return _drop_repeated(self._columns_of(reference, qualify=True))
        if qualifier == "main":
            return _tables(self._names.catalogue)
        return [Candidate(_sql_name(c.name), c.name, c.type, _COLUMN) for c in self._names.columns(qualifier)]

    def _columns_of(self, reference: TableReference, *, qualify: bool, depth: int = 0) -> list[Candidate]:
        """The columns of what stands in FROM."""
        listed: list[Column] = []
        if reference.query is not None:
            if depth < _DEEPEST:
                for one in output_columns(reference.query):
                    if isinstance(one, str):
                        listed.append(Column(one, ""))
                    else:
                        inner = self._columns_of(one, qualify=qualify, depth=depth + 1)
                        listed += [Column(c.name, c.meta) for c in inner]
        elif reference.name:
            listed += self._names.columns(reference.name)
        return [Candidate(_sql_name(c.name), c.name, c.type, _COLUMN) for c in listed]

    def _read_functions(self) -> None:
        from bamquery.function_catalog.function_reference import functions  # noqa: PLC0415 (data of 350 functions)

        for record in functions():
            usage = record.usages[0]
            candidate = Candidate(f"{record.name}(", record.name, usage, _FUNCTION)
            if record.kind == "table":
                self._table_functions.append(candidate)
            else:
                self._functions.append(candidate)
        self._functions = _drop_repeated(self._functions)


def _settings(words: Sequence[str]) -> list[Candidate]:
    from dataclasses import fields  # noqa: PLC0415 (as above)

    from bamquery.engine.settings import Settings  # noqa: PLC0415 (not before somebody sets one)

    if len(words) == 1:
        defaults = Settings()
        named = {field.name: getattr(defaults, field.name) for field in fields(Settings)}
        return [Candidate(name, name, "" if value is None else str(value)) for name, value in named.items()]
    return [Candidate(value, value) for value in SETTING_VALUES.get(words[1].lower(), ())]


SETTING_VALUES: Final = {
    "device": ("'auto'", "'cpu'", "'cuda:0'"),
    "reader": ("'auto'", "'mapped'", "'direct'"),
    "strategy": ("'auto'", "'stream'", "'vectors'", "'blocks'"),
    "verify_checksums": ("true", "false", "'all'"),
    **dict.fromkeys(
        (
            *("zone_maps", "dynamic_filters", "programs", "plan_cache", "allow_cpu", "progress"),
            "profile_vectors",
        ),
        ("true", "false"),
    ),
}
"""What settings can be where that is not a number."""


def _tables(catalogue: CatalogSnapshot, kind: int = _TABLE) -> list[Candidate]:
    return [Candidate(_sql_name(name), name, what, kind) for name, what in catalogue.tables.items()]


def _drop_repeated(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Without those that have been there."""
    return list({(c.text, c.kind): c for c in reversed(list(candidates))}.values())[::-1]


def _is_between_tables(words: Sequence[str]) -> bool:
    """Whether the comma at the end is between tables."""
    for word in reversed(words):
        if word in ("FROM", "JOIN"):
            return True
        if word in ("SELECT", "WHERE", "BY", "SET", "VALUES", "(", "HAVING", "ON", "USING", "WITH"):
            return False
    return False


def _is_name(token: Token) -> bool:
    return token.kind in (Kind.WORD, Kind.NAME)


def _lower(candidate: Candidate) -> Candidate:
    text = candidate.text.lower()
    return Candidate(text, text, candidate.meta, candidate.kind)


def _sql_name(name: str) -> str:
    """A name as SQL takes it: in quotes where it must be."""
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return _quote_name(name)


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
