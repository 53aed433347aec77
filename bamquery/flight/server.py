"""The Flight SQL server: each call of Flight, and the command in it, to what answers it."""

from __future__ import annotations

import secrets
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from pyarrow import flight

from bamquery.flight import messages
from bamquery.flight.authentication import OpenHandshake, TokenMiddleware
from bamquery.flight.flight_errors import as_flight_errors
from bamquery.flight.handles import Handles
from bamquery.flight.ingestion import Upload, ingestion_mode
from bamquery.flight.log import Log
from bamquery.flight.metadata import is_metadata, metadata, metadata_schema
from bamquery.flight.options import ServerOptions
from bamquery.flight.prepared_statements import Prepared
from bamquery.flight.running_statements import RunningCall, RunningStatements
from bamquery.flight.statement_runner import StatementAnswer, Statements, batches, changed_rows
from bamquery.storage.database.database import Database

_CANCEL: Final = "CancelFlightInfo"
_CANCEL_QUERY: Final = "CancelQuery"
_PREPARE: Final = "CreatePreparedStatement"
_CLOSE: Final = "ClosePreparedStatement"
_ACTIONS: Final = MappingProxyType(
    {
        _PREPARE: "Prepare a statement.",
        _CLOSE: "Forget a prepared statement.",
        _CANCEL: "Stop what answers a query, and forget it.",
        _CANCEL_QUERY: "The same, by its older name.",
    }
)
_Report = dict[str, Any]


class FlightSqlServer(flight.FlightServerBase):
    """Serves one database from when it is made until `stop`."""

    def __init__(self, database: Database, options: ServerOptions, log: Log | None = None) -> None:
        """Bind the address and serve.

        Raises:
            SettingError: of the statements' settings.
            ArrowException, OSError: the address cannot be bound, or a certificate is none.
        """
        limits = options.limits
        self._log = log or Log()
        self._statements = Statements(database, options)
        self._answers: Handles[StatementAnswer] = Handles(
            "ticket", limits.ticket_seconds, limits.kept, evicts=True
        )
        self._prepared: Handles[Prepared] = Handles(
            "prepared statement", limits.prepared_seconds, limits.kept
        )
        self._running = RunningStatements(limits)
        tls = options.tls
        host = f"[{options.host}]" if ":" in options.host else options.host
        security: dict[str, Any] = {}
        if tls is not None:
            security["tls_certificates"] = [(tls.certificate, tls.key)]
            if tls.client_authority is not None:
                security |= {"verify_client": True, "root_certificates": tls.client_authority}
        if options.token is not None:
            security["middleware"] = {"token": TokenMiddleware(options.token, self._log)}
        location = f"grpc{'+tls' if tls else ''}://{host}:{options.port}"
        try:
            _require_free(options.host, options.port)
            super().__init__(location, auth_handler=OpenHandshake(), **security)
        except BaseException:
            self._running.close()
            raise

    def stop(self, drain_seconds: float, stop_seconds: float) -> bool:
        """Take no new statement, wait for those that run, then stop them; whether all have ended."""
        self._log.write("stopping", running=self._running.count)
        ended = self._running.drain(drain_seconds) or self._running.stop_all(stop_seconds)
        self._running.close()
        return ended

    # Calls of Flight.

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Run a statement, or see to it that it can be; see `is_metadata` for others than SQL."""
        with self._call(context, "get_flight_info") as report:
            name, command = self._command(descriptor, report)
            if is_metadata(name):
                return _info(metadata_schema(name, command), descriptor, descriptor.command)
            if name == "CommandStatementQuery":
                text, values = command.query, None
            elif name == "CommandPreparedStatementQuery":
                prepared = self._prepared.get(command.prepared_statement_handle)
                text, values = prepared.text, prepared.values
            else:
                raise ValueError(f"{name} asks for no rows: send it with DoPut")
            _no_transaction(command)
            with self._running.turn(context) as running, running.reasons():
                answer = StatementAnswer(self._statements.run(text, values, running))
            handle = self._answers.add(answer)
            ticket = messages.pack("TicketStatementQuery", statement_handle=handle)
            return _info(answer.relation.schema, descriptor, ticket)

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """What a statement would answer; it is not run."""
        with self._call(context, "get_schema") as report:
            name, command = self._command(descriptor, report)
            if is_metadata(name):
                return flight.SchemaResult(metadata_schema(name, command))
            _no_transaction(command)
            with self._running.turn(context) as running, running.reasons():
                if name == "CommandStatementQuery":
                    return flight.SchemaResult(self._statements.schema(command.query, None, running))
                if name == "CommandPreparedStatementQuery":
                    prepared = self._prepared.get(command.prepared_statement_handle)
                    return flight.SchemaResult(prepared.dataset_schema(self._statements, running))
            raise ValueError(f"{name} has no schema")

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Rows of a statement that has been sent, or metadata."""
        with self._call(context, "do_get", quiet=True):
            name, command = messages.unpack(ticket.ticket)
            if is_metadata(name):
                return flight.RecordBatchStream(metadata(name, command, self._statements))
            if name != "TicketStatementQuery":
                raise ValueError(f"{name} is no ticket: ask for one with GetFlightInfo")
            answer = self._answers.get(command.statement_handle)
            rows = self._rows(context, command.statement_handle, answer)
            return flight.GeneratorStream(answer.relation.schema, rows)

    def _rows(self, context: Any, handle: bytes, answer: StatementAnswer) -> Iterator[pa.RecordBatch]:
        with (
            self._call(context, "do_get") as report,
            self._running.turn(context) as running,
            running.reasons(),
        ):
            report |= {"rows": 0, "bytes": 0}
            for batch in batches(answer, running):
                report["rows"] += batch.num_rows
                report["bytes"] += batch.nbytes
                yield batch
            self._answers.remove(handle)  # one that broke off can be asked for again

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Run a statement that changes rows, bind values, or load rows into a table."""
        with self._call(context, "do_put") as report:
            name, command = self._command(descriptor, report)
            handler = self._PUTS.get(name)
            if handler is None:
                raise ValueError(f"{name} takes no rows: send it with GetFlightInfo")
            _no_transaction(command)
            with self._running.turn(context) as running, running.reasons():
                answer = handler(self, command, Upload(reader, context), running)
            report["rows"] = getattr(answer, "record_count", None)
            writer.write(pa.py_buffer(answer.SerializeToString()))

    def list_actions(self, context: Any) -> Any:
        """Names and meanings."""
        del context
        return list(_ACTIONS.items())

    def do_action(self, context: Any, action: Any) -> list[Any]:
        """Prepare, close or cancel a statement."""
        with self._call(context, "do_action") as report:
            report["command"] = action.type[:100]
            body = bytes(action.body)
            if action.type == _CANCEL:
                info = messages.parse_message("CancelFlightInfoRequest", body).info
                status = messages.make("CancelFlightInfoResult", status=self._cancel(info))
                return [flight.Result(pa.py_buffer(status.SerializeToString()))]
            if action.type not in _ACTIONS:
                raise NotImplementedError(
                    f"this server has no {action.type[:100]!r}: there are neither transactions nor sessions"
                )
            name, request = messages.unpack(body)
            if name != f"Action{action.type}Request":
                raise ValueError(f"{action.type} takes an Action{action.type}Request, not a {name}")
            if action.type == _PREPARE:
                return [self._prepare(context, request)]
            if action.type == _CANCEL_QUERY:
                packed = messages.pack("ActionCancelQueryResult", result=self._cancel(request.info))
                return [flight.Result(pa.py_buffer(packed))]
            self._prepared.remove(request.prepared_statement_handle)
            return []

    # What they do.

    def _prepare(self, context: Any, request: Any) -> Any:
        _no_transaction(request)
        with self._running.turn(context) as running, running.reasons():
            prepared = Prepared.parse(request.query)
            dataset = prepared.dataset_schema(self._statements, running)
        packed = messages.pack(
            "ActionCreatePreparedStatementResult",
            prepared_statement_handle=self._prepared.add(prepared),
            dataset_schema=dataset.serialize().to_pybytes(),
            parameter_schema=prepared.parameter_schema().serialize().to_pybytes(),
        )
        return flight.Result(pa.py_buffer(packed))

    def _cancel(self, info: bytes) -> int:
        """Stop what a FlightInfo stands for."""
        status = messages.NOT_CANCELLABLE
        for endpoint in flight.FlightInfo.deserialize(info).endpoints:
            name, ticket = messages.unpack(endpoint.ticket.ticket)
            answer = self._answers.remove(ticket.statement_handle) if name == "TicketStatementQuery" else None
            if answer is not None:
                status = messages.CANCELLED
                for running in list(answer.running):
                    running.stop(flight.FlightCancelledError("the query was cancelled by its client"))
        return status

    def _update(self, command: Any, rows: Iterator[pa.RecordBatch], running: RunningCall) -> Any:
        del rows
        return self._update_result(changed_rows(self._statements.run(command.query, None, running)))

    def _update_prepared(self, command: Any, rows: Iterator[pa.RecordBatch], running: RunningCall) -> Any:
        prepared = self._prepared.get(command.prepared_statement_handle)
        values = prepared.rows(rows) if prepared.names else iter([None])
        total = 0
        for one in values:
            running.check()
            total += changed_rows(self._statements.run(prepared.text, one, running))
        return self._update_result(total)

    def _bind(self, command: Any, rows: Iterator[pa.RecordBatch], running: RunningCall) -> Any:
        del running
        prepared = self._prepared.get(command.prepared_statement_handle)
        bound = prepared.rows(rows)
        prepared.values = next(bound, None)
        if next(bound, None) is not None:
            raise ValueError("a query takes one row of values, and several came")
        return messages.make(
            "DoPutPreparedStatementResult", prepared_statement_handle=command.prepared_statement_handle
        )

    def _ingest(self, command: Any, rows: Upload, running: RunningCall) -> Any:
        self._statements.require_writing()
        mode = ingestion_mode(command, self._statements)
        return self._update_result(self._statements.load(command.table, rows.reader(), mode, running))

    @staticmethod
    def _update_result(rows: int) -> Any:
        return messages.make("DoPutUpdateResult", record_count=rows)

    _PUTS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
        {
            "CommandStatementUpdate": _update,
            "CommandPreparedStatementUpdate": _update_prepared,
            "CommandPreparedStatementQuery": _bind,
            "CommandStatementIngest": _ingest,
        }
    )

    def _command(self, descriptor: Any, report: _Report) -> tuple[str, Any]:
        if descriptor.command is None:
            raise ValueError("this server takes commands of Flight SQL, and no paths")
        name, command = messages.unpack(descriptor.command)
        report["command"] = name
        return name, command

    @contextmanager
    def _call(self, context: Any, method: str, *, quiet: bool = False) -> Iterator[_Report]:
        """A call until its end: its line in the log, and its errors as Flight's."""
        report: _Report = {"call": secrets.token_hex(4), "method": method, "peer": context.peer()}
        started = time.monotonic()

        def report_failure(error: BaseException, *, is_bug: bool) -> None:
            report["error"] = type(error).__name__
            if is_bug:
                report["detail"] = "".join(traceback.format_exception(error))

        try:
            with as_flight_errors(report_failure):
                yield report
        except GeneratorExit:
            report["error"] = "the client left"
            raise
        finally:
            if not quiet or "error" in report:
                self._log.write("call", **report, seconds=round(time.monotonic() - started, 6))


def _require_free(host: str, port: int) -> None:
    """Refuse a port that is taken: gRPC would share it with whoever has it, and each get some calls."""
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return


def _info(schema: pa.Schema, descriptor: Any, ticket: bytes) -> Any:
    return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(ticket, [])], -1, -1)


def _no_transaction(command: Any) -> None:
    fields = command.DESCRIPTOR.fields_by_name
    if "transaction_id" in fields and command.transaction_id:
        raise NotImplementedError("there are no transactions: every statement commits by itself")
