"""Random queries within expressions: values, IN, EXISTS, ANY and ALL, tied to their surroundings or not."""

from __future__ import annotations

from dataclasses import replace

from tests.sql.randomized.grammar.expressions import COMPARISONS
from tests.sql.randomized.grammar.scope import Chooser, Scope
from tests.sql.randomized.grammar.sources import Sources
from tests.sql.randomized.grammar.tables import Table

WAYS = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST", " DESC NULLS FIRST")


class Subqueries(Sources):
    """Gives the expressions their queries."""

    def __init__(self, choose: Chooser, tables: list[Table]) -> None:
        super().__init__(choose, tables)
        self.expressions.subquery = self.value_query
        self.expressions.condition_query = self.condition_query

    def _inner(self, scope: Scope) -> tuple[str, Scope, str]:
        """FROM, scope and WHERE of a query within; tied to its surroundings or not."""
        self.depth += 1
        text, inner = self.from_(most=2 if self.depth <= 1 else 1)
        inner = inner.nest(scope)
        parts = []
        if self.choose.chance(0.55) and inner.outer is not None and inner.outer.columns:
            pair = self.pair(inner.outer, inner)
            if pair is not None:
                operator = self.choose.pick("=", "=", "=", "=", "IS NOT DISTINCT FROM", "<", ">=", "<>")
                parts.append(f"{pair[0].sql} {operator} {pair[1].sql}")
        if self.choose.chance(0.4):
            parts.append(self.expressions.truth(inner, 1))
        self.depth -= 1
        where = f" WHERE {self.choose.pick(' AND ', ' AND ', ' OR ').join(parts)}" if parts else ""
        return text, inner, where

    def value_query(self, scope: Scope, kind: str) -> str:
        """A query that is one value."""
        if self.depth > 1 or self.large:
            return self.expressions.leaf(scope, kind).sql
        choose = self.choose
        text, inner, where = self._inner(scope)
        own = replace(inner, outer=None)
        columns = [column for column in own.columns_of_kinds(kind) if not column.near]
        draw = choose.seed.random()
        if kind == "int" and draw < 0.4:
            call = choose.pick("count(*)", "count(*) + 1", "coalesce(sum(1), 0)")
            if columns and choose.chance(0.6):
                call = f"{choose.pick('count', 'sum', 'max', 'count(DISTINCT')}"
                call = (
                    f"{call} {choose.one_of(columns).sql})"
                    if "(" in call
                    else f"{call}({choose.one_of(columns).sql})"
                )
            having = " HAVING count(*) > 1" if choose.chance(0.1) else ""
            return f"(SELECT {call} FROM {text}{where}{having})"
        if not columns:
            return self.expressions.leaf(scope, kind).sql
        column = choose.one_of(columns).sql
        if draw < 0.75:
            return f"(SELECT {choose.pick('min', 'max')}({column}) FROM {text}{where})"
        if draw < 0.98:
            return f"(SELECT {column} FROM {text}{where} ORDER BY 1{choose.one_of(WAYS)} LIMIT 1)"
        return f"(SELECT {column} FROM {text}{where})"

    def condition_query(self, scope: Scope) -> str:
        """A condition with a query in it."""
        if self.depth > 1 or self.large:
            return self.expressions.comparison(scope, 0)
        choose = self.choose
        text, inner, where = self._inner(scope)
        draw = choose.seed.random()
        negation = choose.pick("", "NOT ")
        if draw < 0.35:
            more = choose.pick("1", "*")
            return f"({negation}EXISTS (SELECT {more} FROM {text}{where}))"
        own = replace(inner, outer=None)
        pair = self.pair(replace(scope, outer=None), own) if scope.columns else None
        if pair is None:
            return f"({negation}EXISTS (SELECT 1 FROM {text}{where}))"
        value, column = pair[0].sql, pair[1].sql
        if draw < 0.7:
            return f"({value} {negation}IN (SELECT {column} FROM {text}{where}))"
        if draw < 0.9:
            operator = choose.one_of(COMPARISONS[:7])
            quantifier = choose.pick("ANY", "ALL", "SOME")
            return f"({value} {operator} {quantifier} (SELECT {column} FROM {text}{where}))"
        comparison = choose.one_of(COMPARISONS)
        return f"({choose.number(0, 2)} {comparison} (SELECT count({column}) FROM {text}{where}))"
