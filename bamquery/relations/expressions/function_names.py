"""`fn`: every function of SQL as an attribute."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from bamquery.relations.expressions.expression import FunctionCall, call
from bamquery.sql_frontend.functions.aggregates import AGGREGATES
from bamquery.sql_frontend.functions.scalar_functions import FUNCTIONS
from bamquery.sql_frontend.functions.window_functions import WINDOW_FUNCTIONS
from bamquery.text.identifiers import suggestion

_NAME: Final = re.compile(r"[a-z_]\w*")


class Function:
    """A function that waits for its arguments; what is no expression among them is a constant."""

    def __init__(self, name: str) -> None:
        """Made by `fn`."""
        self._name = name

    def __call__(self, *arguments: Any, distinct: bool = False, order_by: Any = ()) -> FunctionCall:
        """The call.

        Args:
            arguments: expressions, and Python values as constants: a str is a text, not a column.
            distinct: of an aggregate: each different value once.
            order_by: of an aggregate whose answer depends on it: the order of its rows.

        Raises:
            TypeError: SQL has no type for an argument.
        """
        return call(self._name, *arguments, distinct=distinct, order_by=order_by)

    def __repr__(self) -> str:
        return f"fn.{self._name}"


class Functions:
    """Functions by name: `fn.date_trunc("month", col("pickup_at"))`; `dir(fn)` has them all."""

    def __getattr__(self, name: str) -> Function:
        # Words of Python have an underscore behind them: fn.if_().
        known = name.lower() if name.lower() in _names() else name.lower().rstrip("_")
        if known not in _names():
            raise AttributeError(f"SQL has no function {name}().{suggestion(name, _names())}")
        return Function(known)

    def __dir__(self) -> Iterable[str]:
        return sorted(_names())


@cache
def _names() -> frozenset[str]:
    known = (*FUNCTIONS, *AGGREGATES, *WINDOW_FUNCTIONS)
    return frozenset(name for name in known if _NAME.fullmatch(name))


fn: Final = Functions()
"""See `Functions`."""
