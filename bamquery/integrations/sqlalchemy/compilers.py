"""SQLAlchemy's expressions, definitions and types as BamQuery writes them."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import exc, schema, types, util
from sqlalchemy.dialects.postgresql.base import RESERVED_WORDS
from sqlalchemy.sql import compiler

_SINGLE_BITS: Final = 24
"""Up to so many bits of digits a FLOAT has."""
_WAY_OUT: Final = "leave it out, or say create_engine(..., omit_constraints=True) to have tables without any"


class BamQueryCompiler(compiler.SQLCompiler):
    """Queries and INSERT."""

    def get_select_precolumns(self, select: Any, **kw: Any) -> str:
        """DISTINCT, also ON expressions."""
        if not select._distinct_on:
            return super().get_select_precolumns(select, **kw)
        keys = ", ".join(self.process(column, **kw) for column in select._distinct_on)
        return f"DISTINCT ON ({keys}) "

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """LIMIT and OFFSET."""
        text = ""
        if select._limit_clause is not None:
            text += f"\n LIMIT {self.process(select._limit_clause, **kw)}"
        if select._offset_clause is not None:
            text += f"\n OFFSET {self.process(select._offset_clause, **kw)}"
        return text

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """`regexp_matches`."""
        return self._regexp("regexp_matches", binary, [], **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """`NOT regexp_matches`."""
        return f"NOT {self._regexp('regexp_matches', binary, [], **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """`regexp_replace` of all matches, as SQLAlchemy means it."""
        return self._regexp("regexp_replace", binary, ["g"], **kw)

    def _regexp(self, function: str, binary: Any, options: list[str], **kw: Any) -> str:
        options = [*options, *(binary.modifiers.get("flags") or "")]
        arguments = [self.process(binary.left, **kw), self.process(binary.right, **kw)]
        if options:
            arguments.append(self.render_literal_value("".join(dict.fromkeys(options)), types.String()))
        return f"{function}({', '.join(arguments)})"

    def visit_aggregate_strings_func(self, fn: Any, **kw: Any) -> str:
        """`string_agg`."""
        kw.pop("use_function_name", None)
        return super().visit_aggregate_strings_func(fn, use_function_name="string_agg", **kw)

    def visit_try_cast(self, cast: Any, **kw: Any) -> str:
        """`TRY_CAST`."""
        return f"TRY_CAST({self.process(cast.clause, **kw)} AS {self.process(cast.typeclause, **kw)})"


class BamQueryDdlCompiler(compiler.DDLCompiler):
    """CREATE TABLE and the like; a constraint that BamQuery does not hold is refused, or left out if told."""

    def visit_create_table(self, create: Any, **kw: Any) -> str:
        """Refuse all that cannot be before there is a table."""
        for index in create.element.indexes:
            if index.unique:
                self._leave_out(f"UNIQUE index of {', '.join(index.columns.keys())}", create.element)
        return super().visit_create_table(create, **kw)

    def get_column_specification(self, column: Any, **kw: Any) -> str:
        """A column's name, type, default and NOT NULL."""
        if column.identity is not None:
            raise exc.CompileError("BamQuery has no IDENTITY: give each row its number")
        if isinstance(column.type.dialect_impl(self.dialect), types.Interval) or (
            getattr(column.type.dialect_impl(self.dialect), "__visit_name__", "") == "INTERVAL"
        ):
            raise exc.CompileError("tables cannot hold INTERVAL: BigInteger can count microseconds")
        return super().get_column_specification(column, **kw)

    def visit_primary_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Refused, or left out."""
        return self._leave_out("PRIMARY KEY", constraint.table) if len(constraint) else None

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Refused, or left out."""
        return self._leave_out("FOREIGN KEY", constraint.parent)

    def visit_unique_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Refused, or left out."""
        return self._leave_out("UNIQUE constraint", constraint.table) if len(constraint) else None

    def visit_check_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Refused, or left out."""
        return self._leave_out("CHECK", constraint.table)

    def visit_column_check_constraint(self, constraint: Any, **kw: Any) -> str:
        """Refused, or left out."""
        self._leave_out("CHECK", constraint.parent.table)
        return ""

    def visit_add_constraint(self, create: Any, **kw: Any) -> str:
        """Refused, or left out."""
        self._leave_out(type(create.element).__name__, create.element.table)
        return ""

    def visit_computed_column(self, generated: Any, **kw: Any) -> str:
        """Refused."""
        raise exc.CompileError("BamQuery has no generated columns: make a view")

    def visit_create_sequence(self, create: Any, prefix: str | None = None, **kw: Any) -> str:
        """Refused."""
        raise exc.CompileError("BamQuery has no sequences")

    def visit_create_index(
        self, create: Any, include_schema: bool = False, include_table_schema: bool = True, **kw: Any
    ) -> str:
        """Nothing: zone maps are always there, and an index changes no answer."""
        index = create.element
        if index.unique:
            self._leave_out(f"UNIQUE index of {', '.join(index.columns.keys())}", index.table)
        elif not self._omits_constraints:
            util.warn(
                f'index "{index.name}" is not made: BamQuery has zone maps in place of indexes '
                "(to_sql(index=False), or create_engine(..., omit_constraints=True), asks for none)"
            )
        return ""

    @property
    def _omits_constraints(self) -> bool:
        return bool(getattr(self.dialect, "omit_constraints", False))

    def _leave_out(self, what: str, table: schema.Table) -> None:
        if not self._omits_constraints:
            raise exc.CompileError(
                f'table "{table.name}" has a {what}, which BamQuery does not hold: {_WAY_OUT}'
            )


class BamQueryTypeCompiler(compiler.GenericTypeCompiler):
    """Types. One that would lose something unsaid is refused."""

    def visit_float(self, type_: Any, **kw: Any) -> str:
        """DOUBLE, which Python's float is, unless less is asked for."""
        return "DOUBLE" if type_.precision is None else self.visit_FLOAT(type_, **kw)

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """FLOAT of 32 bits, or DOUBLE where more bits are asked for."""
        return "DOUBLE" if (type_.precision or 0) > _SINGLE_BITS else "FLOAT"

    def visit_DOUBLE_PRECISION(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """DOUBLE."""
        return "DOUBLE"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """DECIMAL, whose digits must be said."""
        return self.visit_DECIMAL(type_, **kw)

    def visit_DECIMAL(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """DECIMAL, whose digits must be said."""
        if type_.precision is None:
            raise exc.CompileError(
                "a DECIMAL without digits would keep three behind the point: write Numeric(38, 10), say"
            )
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """TIMESTAMP, with or without a time zone."""
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """TIMESTAMP, with or without a time zone."""
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_datetime(self, type_: Any, **kw: Any) -> str:
        """TIMESTAMP, with or without a time zone."""
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_TIME(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """TIME, without a time zone."""
        if getattr(type_, "timezone", False):
            raise exc.CompileError("BamQuery has no TIME WITH TIME ZONE: DateTime(timezone=True) has a day")
        return "TIME"

    def visit_time(self, type_: Any, **kw: Any) -> str:
        """TIME, without a time zone."""
        return self.visit_TIME(type_, **kw)

    def visit_uuid(self, type_: Any, **kw: Any) -> str:
        """VARCHAR."""
        return "VARCHAR"

    def visit_UUID(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """Refused."""
        raise exc.CompileError("BamQuery has no type UUID: Uuid() keeps strings")

    def visit_JSON(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """Refused."""
        raise exc.CompileError("BamQuery has no type JSON: keep strings, and json.dumps() them")

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:  # noqa: N802 (SQLAlchemy's name)
        """INTERVAL."""
        return "INTERVAL"


def _own_type(name: str) -> Any:
    def visit(self: BamQueryTypeCompiler, type_: Any, **kw: Any) -> str:
        return name

    return visit


for _name in (
    *("TINYINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"),
    *("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIME_NS"),
):
    setattr(BamQueryTypeCompiler, f"visit_{_name}", _own_type(_name))
for _name in ("CLOB", "NCLOB", "NCHAR", "NVARCHAR"):
    setattr(BamQueryTypeCompiler, f"visit_{_name}", _own_type("VARCHAR"))


class BamQueryIdentifierPreparer(compiler.IdentifierPreparer):
    """Quotes what is a word of SQL, or is written otherwise than words are."""

    reserved_words = RESERVED_WORDS | {
        *("anti", "asof", "at", "describe", "exclude", "glob", "lambda", "lateral", "map", "natural"),
        *("pivot", "positional", "qualify", "replace", "semi", "show", "struct", "summarize", "try_cast"),
        *("unpivot", "values", "window"),
    }
