"""What the making of a plan assumes of its statement's constants, so that it may serve other constants, too.

A constant of the text is a literal with an `Origin`. Who reads its value makes the plan one for this value
alone. Who asks something of it (`ask`) makes it one for all values of which the answer is the same, and what
is computed of it (`compute`) is computed of other values in its place. Literals may be compared with each
other and put into sets without a question: which of those that ever were are equal, the types of all and
which are null are the same for all constants that a plan serves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, TypeVar

from bamquery.plan.expressions import Expression, Literal
from bamquery.plan.nodes import Plan

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Question:
    """What was asked of literals, or of expressions and plans with literals in them, and the answer."""

    ask: Callable[..., Any]
    about: tuple[Any, ...]
    answer: Any

    def is_same(self, other: Question) -> bool:
        """Whether the very same was asked."""
        return self.ask is other.ask and _is_same(self.about, other.about)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return one is other


class Assumptions:
    """Of one statement, while its plan is made.

    Attributes:
        fixed: numbers of the constants whose values were read.
        questions: that were asked of others, in their order.
        literals: all that come from the text, or are computed of such.
    """

    def __init__(self) -> None:
        self.fixed: set[int] = set()
        self.questions: list[Question] = []
        self.literals: list[Literal] = []
        self._made: dict[tuple[Any, ...], Literal] = {}
        self._is_open = True
        self._constants: tuple[Literal, ...] = ()
        self._numbers: tuple[int | None, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether the plan is being made."""
        return self._is_open

    def close(self, others: Sequence[Literal] = ()) -> None:
        """The plan is made: who reads a value now, to run it, changes nothing.

        `others`: literals of the plan that come from no text, which some constant may be equal to.
        """
        known: dict[Literal, int] = {}
        compared = [one.origin is not None and one.origin.is_compared for one in self.literals]
        of_others = [known.setdefault(one, len(known)) for one in others]
        self._numbers = (
            *of_others,
            *(
                known.setdefault(one, len(known)) if is_compared else None
                for one, is_compared in zip(self.literals, compared, strict=True)
            ),
        )
        self._constants = (*others, *self.literals)
        self._is_open = False

    def numbered(self) -> Iterator[tuple[Literal, int | None]]:
        """All literals once the plan is made: equal ones have one number; None: compared with no other."""
        return zip(self._constants, self._numbers, strict=True)

    def fix(self, numbers: frozenset[int]) -> None:
        """Note that values were read."""
        if self._is_open and _here.asking is not self:
            self.fixed |= numbers

    def note(self, question: Question) -> None:
        """Note what was asked; what is asked to answer a question is part of it."""
        if self._is_open and _here.asking is not self:
            self.questions.append(question)

    def add_constant(self, value: Literal, number: int) -> Literal:
        """A literal as constant number `number` of the text."""
        return self._literal(value, Origin(self, frozenset((number,)), None, ()), (number,))

    def computed_before(self, make: Callable[..., Any], of: tuple[Literal, ...]) -> Literal | None:
        """What was computed so before."""
        return self._made.get(_key(make, of))

    def computed(self, value: Literal, make: Callable[..., Any], of: tuple[Literal, ...]) -> Literal:
        """A literal as computed of others, at least one of which comes from the text."""
        numbers = frozenset[int]().union(*(one.origin.numbers for one in of if one.origin is not None))
        return self._literal(value, Origin(self, numbers, make, of), _key(make, of))

    def _literal(self, value: Literal, origin: Origin, key: tuple[Any, ...]) -> Literal:
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Literal(value.value, origin)
            self.literals.append(made)
        return made

    @contextmanager
    def made_here(self) -> Iterator[None]:
        """This thread makes the plan until the end; see `ask_of_plans`. If it fails, it is made once more."""
        before = _here.making, _here.noted
        _here.making, _here.noted = self, []
        try:
            yield
            for place, question in enumerate(_here.noted):  # of each pass of the rules; often the very same
                if not any(map(question.is_same, _here.noted[:place])):
                    self.note(question)
        finally:
            _here.making, _here.noted = before


class Origin:
    """Where a literal comes from.

    Attributes:
        numbers: of the text's constants that its value depends on.
        make: what computes it of the literals `of`; None where it is a constant of the text itself.
        is_compared: whether its literal was compared with another one, or put where such are looked up.
    """

    __slots__ = ("assumptions", "is_compared", "make", "numbers", "of")

    def __init__(
        self,
        assumptions: Assumptions,
        numbers: frozenset[int],
        make: Callable[..., Any] | None,
        of: tuple[Literal, ...],
    ) -> None:
        self.assumptions: Final = assumptions
        self.numbers: Final = numbers
        self.make: Final = make
        self.of: Final = of
        self.is_compared = False

    def fix(self) -> None:
        """Note that the value was read."""
        self.assumptions.fix(self.numbers)


class SpelledName(str):
    """A column's name that is an expression's text, in which other constants have other words.

    Who finds it equal to a name that is none makes the plan one for these constants.
    """

    __slots__ = ("_assumptions", "_pieces")

    def __new__(cls, pieces: Sequence[str], words: Mapping[int, str], assumptions: Assumptions) -> Self:
        """Of text, the number of a constant, text and so on in turn; `words` are those of the constants."""
        made = super().__new__(cls, cls._join(pieces, words))
        made._pieces = tuple(pieces)
        made._assumptions = assumptions
        return made

    _pieces: tuple[str, ...]
    _assumptions: Assumptions

    @staticmethod
    def _join(pieces: Sequence[str], words: Mapping[int, str] | Sequence[str]) -> str:
        return "".join(words[int(one)] if place % 2 else one for place, one in enumerate(pieces))

    def with_words(self, words: Sequence[str]) -> str:
        """The name that it is with other constants."""
        return self._join(self._pieces, words)

    def fix(self) -> None:
        """Note that the name is used for what it says."""
        self._assumptions.fix(frozenset(map(int, self._pieces[1::2])))

    def __eq__(self, other: object) -> bool:
        is_equal = str.__eq__(self, other)
        if is_equal is True and not isinstance(other, SpelledName):
            self.fix()
        return is_equal

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


class _Here(threading.local):
    making: Assumptions | None = None
    noted: list[Question] = []  # noqa: RUF012 (of no thread until one makes a plan)
    asking: Assumptions | None = None  # of whose constants a question is being answered


_here = _Here()


def compute(make: Callable[..., Literal | None], *of: Literal) -> Literal | None:
    """`make(*of)`, which is to depend on these literals alone; None stands for what it says of None."""
    assumptions = _assumptions_about(of)
    if assumptions is None:
        return make(*of)
    known = assumptions.computed_before(make, of)
    if known is not None:
        return known
    made = _answer(assumptions, make, of)
    if made is None:
        assumptions.note(Question(_is_none, (make, of), True))
        return None
    return assumptions.computed(made, make, of)


def ask(question: Callable[..., Answer], *about: Literal) -> Answer:
    """`question(*about)`, which is to depend on these literals alone; answers are compared."""
    assumptions = _assumptions_about(about)
    if assumptions is None:
        return question(*about)
    answer = _answer(assumptions, question, about)
    assumptions.note(Question(question, about, answer))
    return answer


def ask_of_plans(
    question: Callable[[Sequence[Plan], Sequence[Expression]], Answer],
    plans: Sequence[Plan],
    expressions: Sequence[Expression],
) -> Answer:
    """`question(plans, expressions)`, which is to depend on these alone; answers are compared."""
    assumptions = _here.making
    if assumptions is None or _here.asking is not None:
        return question(plans, expressions)
    _here.asking = assumptions
    try:
        answer = question(plans, expressions)
    finally:
        _here.asking = None
    # Not before the plan is made: a question holds what it is about, which are tables, too.
    _here.noted.append(Question(question, (tuple(plans), tuple(expressions)), answer))
    return answer


def _key(make: Callable[..., Any], of: tuple[Literal, ...]) -> tuple[Any, ...]:
    """The same for what is computed in the same way of the same literals, which who keeps it has to hold."""
    way = (make.func, make.args, *make.keywords.items()) if isinstance(make, partial) else (make,)
    return (way, *(id(one.origin) if one.origin is not None else (one.type, one) for one in of))


def _is_none(make: Callable[..., Literal | None], of: tuple[Literal, ...]) -> bool:
    return make(*of) is None


def _assumptions_about(literals: Sequence[Literal]) -> Assumptions | None:
    return next((one.origin.assumptions for one in literals if one.origin is not None), None)


def _answer(assumptions: Assumptions, question: Callable[..., Answer], about: tuple[Literal, ...]) -> Answer:
    try:
        return question(*(one.plain for one in about))
    except BaseException:
        for one in about:
            if one.origin is not None:
                one.origin.fix()
        raise
