"""Queries that were asked before, with these constants or with others, are not planned again."""

from __future__ import annotations

import functools
import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bamquery.catalog.statement_catalog import StatementCatalog
from bamquery.catalog.views import inline_views
from bamquery.engine.constant_folding import moments_read
from bamquery.plan.assumptions import Assumptions
from bamquery.plan.bound_statements import Query, Statement
from bamquery.sql_frontend.parameters import Parameters, values_by_name
from bamquery.sql_frontend.statement_binder import bind
from bamquery.sql_frontend.text_constants import TextConstants
from bamquery.statement_context.deep_recursion import with_deep_recursion

if TYPE_CHECKING:
    from bamquery.session.known_query import KnownQuery
    from bamquery.sql_frontend.parameter_constants import Constants

_MOST_QUERIES: Final = 64
"""Texts that differ in more than constants."""
_MOST_PLANS: Final = 4
"""Of texts that differ in constants only."""
_LONGEST_TEXT: Final = 1 << 16


class StatementCache:
    """Planned queries by their text without its constants, the last ones used. Thread-safe.

    With parameters, by the whole text and the types of their values. Only a text of one query over stored
    tables is kept. It is looked up under the tables'
    versions of now and its constants of now, so that it gives what planning it anew would give.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str | tuple[str, ...], tuple[KnownQuery, ...]] = OrderedDict()

    def bind(
        self, text: str, catalog: StatementCatalog, parameters: Parameters | None
    ) -> Iterator[Statement]:
        """As `bamquery.sql_frontend.statement_binder.bind`, which see."""
        if parameters is not None:
            parameters = values_by_name(parameters)
        constants = _constants(text, parameters) if len(text) <= _LONGEST_TEXT else None
        if constants is None or not catalog.keeps_plans:
            return bind(text, catalog, parameters)
        found = with_deep_recursion(lambda: self._find(text, constants, catalog))
        return self._bind(text, constants, catalog, parameters) if found is None else iter((found,))

    def _bind(
        self, text: str, constants: Constants, catalog: StatementCatalog, parameters: Parameters | None
    ) -> Iterator[Statement]:
        assumptions = Assumptions()
        statements = bind(text, catalog, parameters, (constants, assumptions))
        moments = moments_read()
        first = next(statements, None)
        lasting = moments_read() == moments  # VALUES and range() may hold the time of binding
        if first is None:
            return
        known = None
        tables = catalog.only_tables()
        if isinstance(first, Query) and lasting and tables:
            from bamquery.session.known_query import KnownQuery  # noqa: PLC0415 (not of a first SELECT 1)

            # Inlined already, so that whoever runs it has the very plan that is looked at.
            first = Query(inline_views(first.plan), has_views=False)
            make = partial(KnownQuery.from_plan, text, constants, first.plan, tables, assumptions)
            known = with_deep_recursion(make)
        if known is None:
            assumptions.close()
        yield first
        others = list(itertools.islice(statements, 1))
        if known is not None and not others:
            self._store(known)
        yield from others
        yield from statements

    def _store(self, known: KnownQuery) -> None:
        shape = known.constants.shape
        with self._lock:
            others = [other for other in self._known.get(shape, ()) if other.constants != known.constants]
            self._known[shape] = (known, *others[: _MOST_PLANS - 1])
            self._known.move_to_end(shape)
            while len(self._known) > _MOST_QUERIES:
                self._known.popitem(last=False)

    def _find(self, text: str, constants: Constants, catalog: StatementCatalog) -> Query | None:
        with self._lock:
            known = self._known.get(constants.shape, ())
            if known:
                self._known.move_to_end(constants.shape)
        # Some plans are for constants that happen to be equal: most go through the one that served most.
        for one in sorted(known, key=lambda one: (one.constants != constants, -one.served)):
            found = one.query(text, constants, catalog)
            if found is not None:
                one.served += 1
                self._note_use(one)
                return found
        return None

    def _note_use(self, known: KnownQuery) -> None:
        """The plan that was used longest ago makes room: those of tables' earlier versions, in time."""
        shape = known.constants.shape
        with self._lock:
            plans = self._known.get(shape, ())
            if known in plans[1:]:
                self._known[shape] = (known, *(one for one in plans if one is not known))


_split: Final = functools.lru_cache(maxsize=_MOST_QUERIES)(TextConstants.split)


def _constants(text: str, parameters: Mapping[str, Any] | None) -> Constants | None:
    if parameters is None:
        return _split(text)
    from bamquery.sql_frontend.parameter_constants import ParameterConstants  # noqa: PLC0415 (few texts have any)

    return ParameterConstants.of_values(text, parameters)
