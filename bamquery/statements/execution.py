"""Runs bound statements: queries become relations, everything else is done at once."""

# ruff: noqa: PLC0415 (what carries out a statement is imported with the first of its kind)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bamquery.catalog.views import inline_views
from bamquery.data_types.names import type_name
from bamquery.engine.human_units import human_bytes, plural
from bamquery.errors import ConflictError
from bamquery.plan import bound_statements as statements
from bamquery.plan import nodes
from bamquery.relations.relation import Relation
from bamquery.session.progress.observers import batches_with_progress
from bamquery.session.session import Session
from bamquery.text.identifiers import fold_case

if TYPE_CHECKING:
    from bamquery.engine.profiling.query_profile import QueryProfile
    from bamquery.storage.tables.writer import TableWriter


def run_statement(session: Session, statement: statements.Statement) -> Relation:
    """The statement's answer; what it changes is committed when this returns.

    Raises:
        BamQueryError: it failed, and changed nothing.
    """
    match statement:
        case statements.Query(asked=asked, has_views=has_views):
            return Relation(session, inline_views(statement.plan) if has_views else asked)
        case statements.CreateTableAs():
            return _create_table_as(session, statement)
        case (
            statements.CreateTable()
            | statements.CreateView()
            | statements.DropView()
            | statements.AddColumn()
            | statements.DropColumn()
            | statements.RenameColumn()
            | statements.RenameTable()
            | statements.SetEncoding()
        ):
            from bamquery.statements.definitions import define

            return _success_answer(
                session, define(session.database, statement, session.settings.default_encoding)
            )
        case statements.Insert():
            return _insert(session, statement)
        case statements.DropTable(name=name, if_exists=if_exists):
            from bamquery.statements.definitions import describe_existing

            if if_exists and not describe_existing(session.database, name):
                return _success_answer(session, f'there is no table "{name}"')
            session.database.drop_table(name)
            return _success_answer(session, f'dropped table "{name}"')
        case statements.Describe(fields=fields, notes=notes):
            return _describe(session, fields, notes)
        case statements.ShowTables():
            names = [*session.database.table_names(), *session.database.view_names()]
            return _rows(session, {"name": pa.array(sorted(names, key=fold_case), pa.large_string())})
        case statements.Explain():
            text = _explain(session, statement)
            return _rows(session, {"plan": pa.array(text.splitlines(), pa.large_string())}, text)
        case statements.NoOperation(message=message):
            return _success_answer(session, message)
        case statements.Optimize(name=name, cluster_by=columns):
            from bamquery.statements.optimize_table import optimize_table

            report = optimize_table(session, name, columns)
            return _success_answer(
                session,
                f'optimized table "{name}": {plural(report.fragments_before, "fragment")} '
                f"became {report.fragments_after:,}",
            )
        case statements.Vacuum():
            removed = session.database.vacuum()
            return _success_answer(
                session,
                f"removed {plural(removed.versions, 'version')} and {plural(removed.files, 'other file')}, "
                f"{human_bytes(removed.bytes)}"
                + (f"; not all of what is in use: {', '.join(removed.in_use)}" if removed.in_use else ""),
            )
        case statements.Set(name=name, value=value):
            session.set(name, value)
            return _success_answer(session, f"set {name}")
        case statements.SetVariable(name=name, plan=None):
            session.set_variable(name, None)
            return _success_answer(session, f"reset variable {name}")
        case statements.SetVariable(name=name, plan=plan, type=kind) if plan is not None:
            session.set_variable(name, _value(session, inline_views(plan), kind))
            return _success_answer(session, f"set variable {name}")
        case statements.CopyTo():
            from bamquery.statements.copy_to import copy_to

            rows, profile = copy_to(session, statement, inline_views(statement.plan))
            return _count_answer(session, rows, profile, f"wrote {statement.path}")
        case statements.Summarize():
            from bamquery.statements.summarize import summarize

            return Relation(session, nodes.Values(summarize(session, statement)))
        case statements.Reset(name=name):
            session.set(name, None)
            return _success_answer(session, f"reset {name}")
        case _:
            raise AssertionError(f"nothing runs {type(statement).__name__}")


def _create_table_as(session: Session, statement: statements.CreateTableAs) -> Relation:
    from bamquery.statements.definitions import describe_existing
    from bamquery.storage.format.layout import known_encoding
    from bamquery.storage.format.storable_types import normalize_schema, settle_nulls

    if statement.if_not_exists and (there := describe_existing(session.database, statement.name)):
        return _success_answer(session, there)
    plan = inline_views(statement.plan)
    wanted = pa.schema([pa.field(field.name, field.type) for field in plan.fields])
    schema = settle_nulls(normalize_schema(wanted))
    encoding = known_encoding(statement.encoding or session.settings.default_encoding)
    with session.database.create_table(
        statement.name, schema, or_replace=statement.or_replace, encoding=encoding
    ) as writer:
        profile = _write(session, plan, writer)
        writer.commit()
    return _count_answer(session, writer.rows, profile, f'created table "{statement.name}"')


def _insert(session: Session, statement: statements.Insert) -> Relation:
    plan = inline_views(statement.plan)
    with session.database.table(statement.name).append() as writer:
        if [field.type for field in plan.fields] != list(writer.schema.types):
            raise ConflictError(
                f'table "{statement.name}" was replaced by one with other columns '
                "while the statement was being read: try again"
            )
        profile = _write(session, plan, writer)
        writer.commit()
    return _count_answer(session, writer.rows, profile, f'inserted into table "{statement.name}"')


def _write(session: Session, plan: nodes.Plan, writer: TableWriter) -> QueryProfile:
    writer.limit_memory(session.settings.effective_memory_limit)
    writer.use_threads(session.settings.effective_threads)
    with session.run(plan) as result:
        for batch in batches_with_progress(result, f"Writing {writer.table}"):
            columns = [
                column if column.type == kind else column.cast(kind)
                for column, kind in zip(batch.columns, writer.schema.types, strict=True)
            ]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=writer.schema))
    return result.profile


def _value(session: Session, plan: nodes.Plan, kind: pa.DataType) -> pa.Scalar[Any]:
    """The one value that a plan of one column gives; of NULL alone without the type that the plan has."""
    with session.run(plan) as result:
        (value,) = result.table().column(0)
    if isinstance(value, pa.DictionaryScalar):
        value = value.value
    return pa.scalar(None, kind) if pa.types.is_null(kind) else value


def _explain(session: Session, statement: statements.Explain) -> str:
    from bamquery.engine.explain.text_tree import explain_profile

    inner = statement.statement
    if not statement.analyze:
        return Relation(session, inline_views(inner.plan)).explain()
    if isinstance(inner, statements.Query):
        return Relation(session, inline_views(inner.plan)).explain(analyze=True)
    # What a statement has to say comes first: also where it found nothing to run.
    done = run_statement(session, inner)
    return "\n".join([done.message, *([explain_profile(done.profile)] if done.has_run else [])])


def _describe(
    session: Session, fields: Sequence[nodes.Field], notes: Sequence[tuple[bool, str | None]]
) -> Relation:
    text = pa.large_string()
    nothing = pa.nulls(len(fields), text)
    notes = notes or [(False, None)] * len(fields)
    return _rows(
        session,
        {
            "column_name": pa.array([field.name for field in fields], text),
            "column_type": pa.array([type_name(field.type) for field in fields], text),
            "null": pa.array(["NO" if not_null else "YES" for not_null, _ in notes], text),
            "key": nothing,
            "default": pa.array([default for _, default in notes], text),
            "extra": nothing,
        },
    )


def _count_answer(session: Session, rows: int, profile: QueryProfile, message: str) -> Relation:
    batch = pa.record_batch({"Count": pa.array([rows], pa.int64())})
    told = f"{message}: {plural(rows, 'row')}"
    return Relation(session, nodes.Values(batch), profile=profile, message=told, is_answer=False)


def _success_answer(session: Session, message: str) -> Relation:
    batch = pa.record_batch({"Success": pa.array([], pa.bool_())})
    return Relation(session, nodes.Values(batch), message=message, is_answer=False)


def _rows(session: Session, columns: Mapping[str, pa.Array[Any]], message: str = "") -> Relation:
    return Relation(session, nodes.Values(pa.record_batch(dict(columns))), message=message)
