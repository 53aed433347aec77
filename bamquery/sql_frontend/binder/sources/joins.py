"""Joins in FROM: two plans and two scopes become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from bamquery.plan.asof_condition import asof_condition
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Join, JoinKind, Plan, Project
from bamquery.plan.rewriting import columns_of, conjunction
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions import scalar_functions as functions
from bamquery.sql_frontend.syntax.positions import start
from bamquery.text.identifiers import fold_case, suggestion

Bound = tuple[Plan, Scope]
BindSource = Callable[[exp.Expr], Bound]


@dataclass(frozen=True)
class JoinBinder:
    """Binds the joins of one FROM.

    Attributes:
        sql: the text, for the places of errors.
        make_binder: an expression binder for a clause over a scope.
        bind_source: what stands at one place in FROM.
    """

    sql: str
    make_binder: Callable[[Scope, str], ExpressionBinder]
    bind_source: BindSource

    def bind(self, first: Bound, joins: Sequence[exp.Join]) -> Bound:
        """The first thing in FROM, with all joins that follow.

        A comma binds looser than JOIN: what is joined after it by names, or with rows of the right side
        kept, is joined to what stands after the comma only.

        Raises:
            SqlError: unknown or ambiguous names, conditions that are no condition.
        """
        done = first
        waiting = list(joins)
        while waiting:
            join = waiting.pop(0)
            if not self._is_comma(join):
                done = self._bind_join(done, join)
                continue
            after = 0
            while after < len(waiting) and not self._is_comma(waiting[after]):
                after += 1
            own, waiting = waiting[:after], waiting[after:]
            if any(_needs_own_sides(other) for other in own):
                right = self.bind(self.bind_source(join.this), own)
                done = _cross_join(done, right)
            else:
                done = _cross_join(done, self.bind_source(join.this))
                waiting = [*own, *waiting]
        return done

    def _is_comma(self, join: exp.Join) -> bool:
        offset = start(join)
        plain = not any(join.args.get(key) for key in ("kind", "side", "method", "on", "using"))
        return plain and offset is not None and self.sql[offset] == ","

    def _bind_join(self, left: Bound, join: exp.Join) -> Bound:
        kind = join_kind(join)
        right = self.bind_source(join.this)
        if str(join.args.get("kind") or "").upper() == "CROSS":
            return _cross_join(left, right)
        natural = str(join.args.get("method") or "").upper() == "NATURAL"
        using = join.args.get("using") or ()
        with errors_at(self.sql, join):
            if not natural and not using and join.args.get("on") is None:
                raise ValueError("JOIN needs ON or USING; CROSS JOIN has neither")
        if natural or using:
            return self._join_by_names(
                left, right, kind, join, self._common(left, right, join) if natural else using
            )
        plan, scope = _cross_join(left, right)
        assert isinstance(plan, Join)
        condition = self._condition(join.args["on"], scope)
        joined = replace(plan, kind=kind, condition=condition)
        self._check_asof(joined, join)
        return joined, left[1] if kind in ("semi", "anti") else scope

    def _check_asof(self, plan: Join, join: exp.Join) -> None:
        if plan.kind in ("asof", "asof_left") and plan.condition is not None:
            with errors_at(self.sql, join):
                asof_condition(plan.condition, len(plan.left.fields))

    def _condition(self, node: exp.Expr, scope: Scope) -> Expression:
        bound = self.make_binder(scope, "ON").bind(node)
        with errors_at(self.sql, node):
            return operators.as_boolean(bound, "ON")

    def _common(self, left: Bound, right: Bound, join: exp.Join) -> Sequence[exp.Identifier]:
        """The columns that NATURAL compares."""
        there = {fold_case(column.name) for column, _ in right[1].visible}
        names = dict.fromkeys(c.name for c, _ in left[1].visible if fold_case(c.name) in there)
        with errors_at(self.sql, join):
            if not names:
                raise ValueError("NATURAL JOIN finds no column that both sides have: write ON or CROSS JOIN")
        found = []
        for name in names:
            identifier = exp.to_identifier(name)
            identifier.meta.update({k: v for k, v in join.meta.items() if k in ("start", "end")})
            found.append(identifier)
        return found

    def _join_by_names(
        self, left: Bound, right: Bound, kind: JoinKind, join: exp.Join, names: Sequence[exp.Expr]
    ) -> Bound:
        """A join on equal columns of the same name, each of which * gives once."""

        def pair(node: exp.Expr) -> tuple[ColumnRef, ColumnRef]:
            with errors_at(self.sql, node):
                return _column(left[1], node.name, "left"), _column(right[1], node.name, "right")

        unique = list({fold_case(node.name): node for node in names}.values())
        pairs = apply_to_each(pair, unique, self.sql)
        width = len(left[1].columns)
        moved = [(a, replace(b, index=b.index + width)) for a, b in pairs]
        conditions: list[Expression] = []
        for (a, b), node in zip(moved, unique, strict=True):
            nearest = kind in ("asof", "asof_left") and node is unique[-1]
            with errors_at(self.sql, node):
                conditions.append(operators.compare("greater_equal" if nearest else "equal", a, b))
        plan = Join(left[0], right[0], kind, conjunction(conditions))
        self._check_asof(plan, join)
        if kind in ("semi", "anti"):
            return plan, left[1]
        return _merge_using_columns(plan, left[1].concatenate(right[1]), moved, kind)


def join_kind(join: exp.Join) -> JoinKind:
    """Which kind of join is written."""
    kind = str(join.args.get("kind") or "").upper()
    side = str(join.args.get("side") or "").upper()
    if str(join.args.get("method") or "").upper() == "ASOF":
        return "asof_left" if side == "LEFT" else "asof"
    kinds: dict[str, JoinKind] = {
        "SEMI": "semi",
        "ANTI": "anti",
        "LEFT": "left",
        "RIGHT": "right",
        "FULL": "full",
    }
    return kinds.get(kind) or kinds.get(side) or "inner"


def _needs_own_sides(join: exp.Join) -> bool:
    by_name = bool(join.args.get("using")) or str(join.args.get("method") or "").upper() == "NATURAL"
    return by_name or join_kind(join) in ("right", "full")


def _cross_join(left: Bound, right: Bound) -> Bound:
    return Join(left[0], right[0], "inner"), left[1].concatenate(right[1])


def _column(scope: Scope, name: str, side: str) -> ColumnRef:
    found = scope.find(name)
    if found is None:
        hint = suggestion(name, [column.name for column, _ in scope.visible])
        raise ValueError(f'there is no column "{name}" on the {side} side of the join.{hint}')
    if fold_case(found.name) != fold_case(
        name
    ):  # by its synonym, which DuckDB compares by but does not merge
        raise ValueError(f'on the {side} side of the join "{name}" is called "{found.name}": write ON')
    return found


def _merge_using_columns(
    plan: Plan, scope: Scope, pairs: Sequence[tuple[ColumnRef, ColumnRef]], kind: JoinKind
) -> Bound:
    """The scope in which each pair is one column: the side whose rows are all there, or whichever has one."""
    stands_for: dict[ColumnRef, ColumnRef] = {}
    if kind == "full":
        columns = columns_of(plan)
        values: list[Any] = [functions.call("coalesce", [a, b]) for a, b in pairs]
        names = [a.name for a, _ in pairs]
        plan = Project(plan, (*columns, *values), (*(column.name for column in columns), *names))
        for place, ((a, _), value) in enumerate(zip(pairs, values, strict=True), len(columns)):
            stands_for[a] = ColumnRef(place, a.name, value.type)
        sources = {stands_for[a]: (*scope.sources_of(a), *scope.sources_of(b)) for a, b in pairs}
        scope = replace(
            scope,
            columns=(*scope.columns, *stands_for.values()),
            coalesced=(*scope.coalesced, *sources.items()),
        )
    else:
        stands_for = {a: b if kind == "right" else a for a, b in pairs}
    hidden = {b for _, b in pairs}
    visible = tuple(
        (stands_for[column], "") if column in stands_for else (column, table)
        for column, table in scope.visible
        if column not in hidden
    )
    merged = (*(column for column in scope.merged if column not in stands_for), *stands_for.values())
    return plan, replace(scope, visible=visible, merged=merged)
