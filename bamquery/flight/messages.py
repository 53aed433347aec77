"""Flight SQL's protobuf messages, as far as the server reads and writes them.

Names, numbers and types of fields are those of `FlightSql.proto` and `Flight.proto` of Apache Arrow, which
ships no Python classes for them; protobuf makes these of the table below when this module is imported.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message, message_factory

_PACKAGE: Final = "arrow.flight.protocol.sql"
_URL: Final = f"type.googleapis.com/{_PACKAGE}."
_TYPES: Final = MappingProxyType(
    {
        name.lower(): getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name}")
        for name in ("STRING", "BYTES", "BOOL", "INT32", "UINT32", "INT64")
    }
)
_KEYS: Final = "1 string? catalog, 2 string? db_schema, 3 string table"
_MESSAGES: Final = MappingProxyType(
    {
        "CommandGetSqlInfo": "1 uint32* info",
        "CommandGetXdbcTypeInfo": "1 int32? data_type",
        "CommandGetCatalogs": "",
        "CommandGetDbSchemas": "1 string? catalog, 2 string? db_schema_filter_pattern",
        "CommandGetTables": (
            "1 string? catalog, 2 string? db_schema_filter_pattern, 3 string? table_name_filter_pattern, "
            "4 string* table_types, 5 bool include_schema"
        ),
        "CommandGetTableTypes": "",
        "CommandGetPrimaryKeys": _KEYS,
        "CommandGetExportedKeys": _KEYS,
        "CommandGetImportedKeys": _KEYS,
        "CommandGetCrossReference": (
            "1 string? pk_catalog, 2 string? pk_db_schema, 3 string pk_table, "
            "4 string? fk_catalog, 5 string? fk_db_schema, 6 string fk_table"
        ),
        "CommandStatementQuery": "1 string query, 2 bytes? transaction_id",
        "CommandStatementUpdate": "1 string query, 2 bytes? transaction_id",
        "CommandPreparedStatementQuery": "1 bytes prepared_statement_handle",
        "CommandPreparedStatementUpdate": "1 bytes prepared_statement_handle",
        "TableDefinitionOptions": "1 int32 if_not_exist, 2 int32 if_exists",
        "CommandStatementIngest": (
            "1 TableDefinitionOptions table_definition_options, 2 string table, 3 string? schema, "
            "4 string? catalog, 5 bool temporary, 6 bytes? transaction_id"
        ),
        "TicketStatementQuery": "1 bytes statement_handle",
        "DoPutUpdateResult": "1 int64 record_count",
        "DoPutPreparedStatementResult": "1 bytes? prepared_statement_handle",
        "ActionCreatePreparedStatementRequest": "1 string query, 2 bytes? transaction_id",
        "ActionCreatePreparedStatementResult": (
            "1 bytes prepared_statement_handle, 2 bytes dataset_schema, 3 bytes parameter_schema"
        ),
        "ActionClosePreparedStatementRequest": "1 bytes prepared_statement_handle",
        "ActionCancelQueryRequest": "1 bytes info",
        "ActionCancelQueryResult": "1 int32 result",
        # Of Flight itself.
        "CancelFlightInfoRequest": "1 bytes info",
        "CancelFlightInfoResult": "1 int32 status",
    }
)
"""By message: number, type and name of each field; ? may be missing, * is a list. Enumerations are int32."""

CANCELLED: Final = 1
NOT_CANCELLABLE: Final = 3
"""What the two results of cancelling say."""


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="bamquery/flight_sql.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        made = file.message_type.add(name=name)
        for text in filter(None, fields.split(", ")):
            number, kind, field_name = text.split()
            field = made.field.add(name=field_name, number=int(number))
            field.label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
            if kind.endswith("?"):
                field.proto3_optional = True
                field.oneof_index = len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{field_name}")
            plain = kind.rstrip("?*")
            if plain in _TYPES:
                field.type = _TYPES[plain]
            else:
                field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{plain}"
    return file


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()  # its own: another library may have made the same names
    pool.Add(_file())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES: Final = MappingProxyType(_classes())


def make(name: str, /, **fields: Any) -> Any:
    """The message of that name."""
    return _CLASSES[name](**fields)


def pack(name: str, /, **fields: Any) -> bytes:
    """The message as clients expect it: in an `Any`, which says what it is."""
    content = make(name, **fields).SerializeToString()
    return bytes(any_pb2.Any(type_url=_URL + name, value=content).SerializeToString())


def unpack(data: bytes) -> tuple[str, Any]:
    """The name of the message in an `Any`, and itself.

    Raises:
        ValueError: it is none, or none that the server knows.
    """
    try:
        outer = any_pb2.Any.FromString(data)
        name = outer.type_url.removeprefix(_URL)
        if outer.type_url != _URL + name or name not in _CLASSES:
            shown = outer.type_url[:200] or "of no kind"
            raise ValueError(f"this server does not know the command {shown!r} of Flight SQL")
        return name, _CLASSES[name].FromString(outer.value)
    except (message.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"the command is no message of Flight SQL: {error}") from None


def parse_message(name: str, data: bytes) -> Any:
    """A message that comes as it is.

    Raises:
        ValueError: it is another.
    """
    try:
        return _CLASSES[name].FromString(data)
    except (message.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"this is no {name}: {error}") from None
