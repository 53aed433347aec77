"""A plan that was made for some constants, with others in their places, over the tables of now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from bamquery.plan.assumptions import Assumptions, SpelledName
from bamquery.plan.cardinality import remember_estimates, share_estimates
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from bamquery.plan.interning import share_lasting_facts
from bamquery.plan.nodes import Aggregate, Plan, Project, Source, Window
from bamquery.plan.rewriting import expressions_of, fact_of_node, map_expressions
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.text.statement_text import Place

_VARIES: Final = f"{__name__}.varies"
_CHANGING: Final = frozenset({"child", "left", "right", "inputs", "first", "step", "source"})
"""Fields of nodes."""
_KEPT: Final = ("_columns", "_depth", "_parts")
"""What expressions know of themselves that other constants leave as it is."""


class OtherPlanError(Exception):
    """Other constants would make another plan."""


class Substitution:
    """Makes of plans, expressions and literals what they are with other constants; of each once."""

    def __init__(
        self,
        source: Callable[[Source], Source],
        given: Sequence[Literal] | None = None,
        words: Sequence[str] = (),
        place: Callable[[Place], Place] | None = None,
        *,
        same_tables: bool = False,
    ) -> None:
        """With these changes.

        Args:
            source: what a scan reads instead.
            given: the text's constants, by number; None leaves all as they are.
            words: how these are written.
            place: where the text has it now; None leaves places as they are.
            same_tables: sources have the rows that they had before.
        """
        self._shares_estimates = same_tables and given is None
        self._source = source
        self._given = given
        self._words = words
        self._place = place
        self._literals: dict[int, Literal] = {}  # by the origin; who asks holds what these numbers are of
        self._made: dict[int, Any] = {}

    def require_same_answers(self, assumptions: Assumptions) -> None:
        """See that all that was assumed of the constants holds of the others, too.

        Raises:
            OtherPlanError: it does not.
        """
        if self._given is None:
            return
        numbers: dict[Literal, int] = {}
        for literal, before in assumptions.numbered():
            now = self._literal(literal)
            if before is not None and numbers.setdefault(now, len(numbers)) != before:
                raise OtherPlanError
        with remember_estimates():
            for question in assumptions.questions:
                check_cancelled()
                if question.ask(*map(self.substitute, question.about)) != question.answer:
                    raise OtherPlanError

    def substitute(self, what: Any) -> Any:
        """A plan, an expression, or what is made of such; anything else as it is."""
        if isinstance(what, Literal | Call | Cast | ColumnRef):
            return self.expression(what)
        if isinstance(what, tuple):
            return tuple(map(self.substitute, what))
        return self.plan(what) if hasattr(what, "fields") else what

    def expression(self, expression: Expression) -> Expression:
        """The expression."""
        if isinstance(expression, Literal):
            return self._literal(expression)
        if self._given is None or not _varies(expression):
            return expression
        found: Expression | None = self._made.get(id(expression))
        if found is None:
            found = self._made[id(expression)] = self._rebuild(expression)
        return found

    def plan(self, plan: Plan) -> Plan:
        """The plan."""
        found: Plan | None = self._made.get(id(plan))
        if found is None:
            check_cancelled()
            found = self._made[id(plan)] = self._rebuild_node(plan)
        return found

    def _literal(self, literal: Literal) -> Literal:
        origin = literal.origin
        if origin is None or self._given is None:
            return literal
        found = self._literals.get(id(origin))
        if found is None:
            if origin.make is None:
                (number,) = origin.numbers
                found = self._given[number]
            else:
                found = origin.make(*map(self._literal, origin.of))
            if found is None or found.type != literal.type or found.is_null != literal.is_null:
                raise OtherPlanError
            self._literals[id(origin)] = found
        return found

    def _name(self, name: str) -> str:
        return name.with_words(self._words) if isinstance(name, SpelledName) else name

    def _rebuild(self, expression: Expression) -> Expression:
        made: Call | Cast
        if isinstance(expression, ColumnRef):
            return replace(expression, name=self._name(expression.name))
        assert isinstance(expression, Call | Cast)
        if isinstance(expression, Call):
            arguments = tuple(map(self.expression, expression.arguments))
            made = Call(expression.function, arguments, expression.type)
        else:
            place = expression.place
            if place is not None and self._place is not None:
                place = self._place(place)
            made = Cast(self.expression(expression.argument), expression.type, expression.try_, place)
        known: Mapping[str, Any] = expression.__dict__
        made.__dict__.update({key: known[key] for key in _KEPT if key in known})
        return made

    def _rebuild_node(self, plan: Plan) -> Plan:
        made = self._over_others(plan)
        if self._given is not None and _node_varies(plan):
            made = map_expressions(made, self.expression)
            if isinstance(made, Project | Aggregate | Window) and any(map(_is_spelled, made.names)):
                made = replace(made, names=tuple(map(self._name, made.names)))
        if made is not plan:
            if self._given is None or not _has_spelled_columns(plan):
                made.__dict__["fields"] = plan.fields  # of constants of the same types
            share_lasting_facts(plan, made)
            if self._shares_estimates:
                share_estimates(plan, made)
        return made

    def _over_others(self, plan: Plan) -> Plan:
        """The node over what is made of those below it, and of its source."""
        changes: dict[str, Any] = {}
        names = _field_names(type(plan))
        for name in names:
            if name not in _CHANGING:
                continue
            before = getattr(plan, name)
            if name == "source":
                changes[name] = self._source(before)
            elif name == "inputs":
                changes[name] = tuple(map(self.plan, before))
            else:
                changes[name] = self.plan(before)
        if not changes:
            return plan
        made: Plan = object.__new__(type(plan))  # as `replace`, of which there are dozens each time
        made.__dict__.update({name: plan.__dict__[name] for name in names}, **changes)
        return made


def _field_names(kind: type[Any]) -> tuple[str, ...]:
    known = _known_fields.get(kind)
    if known is None:
        known = _known_fields[kind] = tuple(one.name for one in fields(kind))
    return known


_known_fields: Final[dict[type[Any], tuple[str, ...]]] = {}


@fact_of_node
def _has_spelled_columns(plan: Plan) -> bool:
    return any(_is_spelled(field.name) for field in plan.fields)


@fact_of_node
def _node_varies(plan: Plan) -> bool:
    """Whether the node itself has constants of the text in it, or places of it, or names."""
    if isinstance(plan, Project | Aggregate | Window) and any(map(_is_spelled, plan.names)):
        return True
    return any(map(_varies, expressions_of(plan)))


def _is_spelled(name: str) -> bool:
    return isinstance(name, SpelledName)


def _varies(expression: Expression) -> bool:
    """Whether it has constants of the text in it, or places of it."""
    if isinstance(expression, Literal):
        return expression.origin is not None
    if isinstance(expression, ColumnRef):
        return isinstance(expression.name, SpelledName)
    if not isinstance(expression, Call | Cast):
        return False
    known: bool | None = expression.__dict__.get(_VARIES)
    if known is None:
        below = expression.arguments if isinstance(expression, Call) else (expression.argument,)
        known = (isinstance(expression, Cast) and expression.place is not None) or any(map(_varies, below))
        expression.__dict__[_VARIES] = known
    return known
