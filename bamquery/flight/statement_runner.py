"""Runs clients' statements: each call has a session of its own over the server's one database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.connection.connection import Connection
from bamquery.engine.settings import Settings
from bamquery.errors import AccessError, SettingError, SqlError, within_depth
from bamquery.flight.options import ServerOptions
from bamquery.flight.running_statements import RunningCall
from bamquery.plan import bound_statements as statements
from bamquery.relations.relation import Relation
from bamquery.session.session import Session
from bamquery.sql_frontend.parameters import Parameters
from bamquery.statement_context.garbage_collection import planning
from bamquery.statements.execution import run_statement
from bamquery.storage.database.database import Database

_OWN: Final = MappingProxyType(
    {
        "enable_external_access": "--allow names folders that statements may use",
        "allowed_directories": "--allow names folders that statements may use",
        "allowed_paths": "--allow names folders that statements may use",
        "lock_configuration": "clients cannot change settings",
        "statement_timeout": "it is --statement-timeout",
        "memory_limit": "it is --memory-limit, for all statements together",
        "progress": "there is no terminal",
    }
)
"""Settings that the server makes itself, and what to say of them."""
_READING: Final = (
    *(statements.Query, statements.Describe, statements.ShowTables, statements.Summarize),
    statements.NoOperation,
)
_LONGEST_TEXT: Final = 4 << 20
_MESSAGE_BYTES: Final = 4 << 20
"""Of a batch on its way: clients refuse messages of more than 4 to 16 MiB."""


@dataclass(slots=True, eq=False)
class StatementAnswer:
    """What a ticket stands for: a query that has not begun, or what a statement that is done had to say."""

    relation: Relation
    running: set[RunningCall] = field(default_factory=set)


class Statements:
    """The database, and how statements run on it. Thread-safe."""

    def __init__(self, database: Database, options: ServerOptions) -> None:
        """Over a database, under a server's options.

        Raises:
            SettingError: one of the settings is none, or the server's own.
        """
        self.database = database
        self.read_only = options.read_only
        self.settings = _settings(options)

    def session(self) -> Session:
        """A session of one call; it is not closed, as the database is all that it has."""
        return Session(self.database, self.settings)

    def run(self, text: str, values: Parameters | None, running: RunningCall) -> Relation:
        """Run statements; the answer of the last one. Queries do not run before their rows are taken.

        Raises:
            BamQueryError: as `Connection.sql`, or a statement would change something that it must not.
        """
        _require_text(text)
        session = self.session()
        running.on_stop(session.interrupt)
        catalog = session.catalog(with_variables=False)
        relation = None
        with within_depth(text), session.statement_running():
            bound = session.statements.bind(text, catalog, values)
            while (statement := _next_statement(bound)) is not None:
                running.check()
                self._permit(statement)
                relation = run_statement(session, statement)
                catalog.next_statement()
        running.check()
        if relation is None:
            raise SqlError("there is no statement", text)
        return relation

    def load(self, name: str, reader: pa.RecordBatchReader, if_exists: Any, running: RunningCall) -> int:
        """Put a client's rows into a table, all or none; returns how many.

        Raises:
            BamQueryError: as `Connection.load`, or nothing may be changed.
        """
        self.require_writing()
        session = self.session()
        running.on_stop(session.interrupt)
        return Connection(session).load(name, reader, if_exists=if_exists)

    def schema(self, text: str, values: Parameters | None, running: RunningCall) -> pa.Schema:
        """What the one statement of a text would answer; nothing that changes something is run.

        Raises:
            BamQueryError: it cannot be bound, or there are several.
        """
        _require_text(text)
        session = self.session()
        running.on_stop(session.interrupt)
        catalog = session.catalog(with_variables=False)
        with within_depth(text), session.planning():
            bound = list(session.statements.bind(text, catalog, values))
        if len(bound) != 1:
            raise SqlError(f"there must be one statement, not {len(bound)}", text)
        match bound[0]:
            case statements.Query(asked=asked):
                return pa.schema([pa.field(column.name, column.type) for column in asked.fields])
            case statements.Explain():
                return pa.schema([pa.field("plan", pa.large_string())])
            case statement if isinstance(statement, _READING):
                return run_statement(session, statement).schema
            case _:
                return pa.schema([])

    def require_writing(self) -> None:
        """Refuse what changes something, where nothing may.

        Raises:
            AccessError: the server is read-only.
        """
        if self.read_only:
            raise AccessError("the server is read-only: it runs no statement that changes anything")

    def _permit(self, statement: statements.Statement) -> None:
        reads = isinstance(statement, _READING) or (
            isinstance(statement, statements.Explain)
            and (not statement.analyze or isinstance(statement.statement, statements.Query))
        )
        if not reads:
            self.require_writing()


def _next_statement(bound: Iterator[statements.Statement]) -> statements.Statement | None:
    with planning():
        return next(bound, None)


def changed_rows(relation: Relation) -> int:
    """How many rows a statement changed that is done.

    Raises:
        SqlError: it was a query.
    """
    if relation.is_answer:
        raise SqlError("the statement is a query, and was sent as one that changes rows: send it as a query")
    if relation.columns != ["Count"]:
        return 0
    with relation.run() as result:
        return int(result.table().column(0)[0].as_py())


def batches(answer: StatementAnswer, running: RunningCall) -> Iterator[pa.RecordBatch]:
    """An answer's batches as they come, none of them too large for a message."""
    answer.running.add(running)
    try:
        result = answer.relation.run()
        running.on_stop(result.cancel, result.close)
        with result:
            while True:
                running.check()
                batch = next(result, None)
                running.check()
                if batch is None:
                    return
                for piece in pieces(batch):
                    running.given_at = time.monotonic()
                    yield piece
                    running.given_at = None
                    running.check()
    finally:
        answer.running.discard(running)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch, or parts of it that fit a message each; a single row goes as it is."""
    if batch.num_rows < 2 or batch.nbytes <= _MESSAGE_BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from pieces(batch.slice(0, half))
    yield from pieces(batch.slice(half))


def _require_text(text: str) -> None:
    if len(text) > _LONGEST_TEXT:
        raise SqlError(
            f"the statement has {len(text):,} characters, and a server takes {_LONGEST_TEXT:,}: load rows by "
            "bulk ingestion instead"
        )


def _settings(options: ServerOptions) -> Settings:
    for name in options.settings:
        if name.lower() in _OWN:
            raise SettingError(f"{name} cannot be set for a server: {_OWN[name.lower()]}")
    limits = options.limits
    settings = Settings().with_values(options.settings)
    memory = limits.memory or settings.effective_memory_limit
    return settings.with_values(
        {
            "memory_limit": max(memory // limits.statements, 1),
            "statement_timeout": limits.statement_seconds,
            "progress": False,
            "allowed_directories": [str(folder) for folder in options.allowed_directories],
            "enable_external_access": False,
            "lock_configuration": True,
        }
    )
