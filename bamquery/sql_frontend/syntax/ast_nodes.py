"""Statements of BamQuery that sqlglot has no tree for, as trees of their own."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from sqlglot import exp

from bamquery.plan.expressions import ColumnRef

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


class Plus(exp.Expression, exp.Func):
    """+`this`, which is for numbers only; to sqlglot's generators a function of that name."""

    _sql_names: ClassVar[list[str]] = ["+"]


class SetSetting(exp.Expression):
    """SET `this` = `expression`: an identifier and a literal, boolean, null or word."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "expression": True}


class SetVariable(exp.Expression):
    """SET VARIABLE `this` = `expression`: an identifier and a query of one value, none of DEFAULT."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "expression": False}


class AlterTable(exp.Expression):
    """ALTER `kind` [IF EXISTS] `this` `action`: one of the five below."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "kind": True, "exists": False, "action": True}


class AddColumn(exp.Expression):
    """ADD COLUMN [IF NOT EXISTS] `this`: a column's definition."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "exists": False}


class DropColumn(exp.Expression):
    """DROP COLUMN [IF EXISTS] `this`: an identifier."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "exists": False, "cascade": False}


class RenameColumn(exp.Expression):
    """RENAME COLUMN `this` TO `expression`: identifiers."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "expression": True}


class RenameTable(exp.Expression):
    """RENAME TO `this`: an identifier."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True}


class SetOptions(exp.Expression):
    """SET (`expressions`): some of `TableOption`."""

    arg_types: ClassVar[dict[str, Any]] = {"expressions": True}


class TableOption(exp.Expression):
    """`this` = `expression`: an identifier and a value."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "expression": True}


class CopyTo(exp.Expression):
    """COPY `this` [(`columns`)] TO `path` [(`options`)]: a table or a query."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "columns": False, "path": True, "options": False}


class CopyFrom(exp.Expression):
    """COPY `this` [(`columns`)] FROM `path` [(`options`)]: a table."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "columns": False, "path": True, "options": False}


class Option(exp.Expression):
    """`this` `expression`: one option of COPY, whose value may be left out."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "expression": False}


class Summarize(exp.Expression):
    """SUMMARIZE `this`: a table or a query."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True}


class Reset(exp.Expression):
    """RESET `this`: an identifier."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True}


class SchemaName(exp.Expression):
    """`this`, with the database's name before it if there is `catalog`: identifiers."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "catalog": False}


class ShowTables(exp.Expression):
    """SHOW TABLES [FROM `this`]: a `SchemaName`."""

    arg_types: ClassVar[dict[str, Any]] = {"this": False}


class ShowSubject(exp.Expression):
    """SHOW of a part of the catalogue, whose name is `this`; of one `table`, whose name may be a text."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "table": False}


class ShowNamed(exp.Expression):
    """SHOW `this`: a table, or else a setting."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True}


class SchemaStatement(exp.Expression):
    """USE, CREATE SCHEMA or DROP SCHEMA, as `verb` says, of `this`: a `SchemaName`."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True, "verb": True, "exists": False}


class Refused(exp.Expression):
    """What stands in an expression and is refused, by the words `this`."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True}


class Foreign(exp.Expression):
    """A statement of DuckDB that begins with the keyword `this` and that BamQuery does not run."""

    arg_types: ClassVar[dict[str, Any]] = {"this": True}


def chosen_column(column: ColumnRef) -> exp.Column:
    """A column by what it is, not by its name, which others may have, too."""
    node = exp.Column(this=exp.to_identifier(column.name, quoted=True))
    node.meta["chosen"] = column
    return node
