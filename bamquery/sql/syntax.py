"""Statements of BamQuery that sqlglot has no tree for, as trees of their own."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from sqlglot import exp

INTERVAL_UNITS: Final = frozenset(
    {
        *("year", "years", "quarter", "quarters", "month", "months", "week", "weeks", "day", "days", "hour"),
        *("hours", "minute", "minutes", "second", "seconds", "millisecond", "milliseconds", "microsecond"),
        *("microseconds", "decade", "decades", "century", "centuries", "millennium", "millennia"),
    }
)
"""Words that may follow the amount of an INTERVAL."""


class Explain(exp.Expression):
    """EXPLAIN [ANALYZE] `this`."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "analyze": False}


class Optimize(exp.Expression):
    """OPTIMIZE `this` [CLUSTER BY (`columns`)]: identifiers all."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "columns": False}


class Vacuum(exp.Expression):
    """VACUUM."""

    arg_types: ClassVar[dict[str, Any]] = {}


class SetSetting(exp.Expression):
    """SET `this` = `expression`: an identifier and a literal, boolean, null or word."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "expression": True}


class Foreign(exp.Expression):
    """A statement of DuckDB that begins with the keyword `this` and that BamQuery does not run."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True}
