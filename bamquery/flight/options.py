"""What a server is told when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Certificates and keys, PEM.

    Attributes:
        certificate: the server's, with those between it and its authority.
        key: of the first of them.
        client_authority: who signs the certificates of clients; None: they need none.
    """

    certificate: bytes
    key: bytes
    client_authority: bytes | None = None


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How much a server does at a time, and for how long. Times are in seconds.

    Attributes:
        statements: that run at the same time.
        queue_seconds: a statement waits for its turn.
        statement_seconds: a statement may take; None: as long as it likes.
        memory: bytes that the statements may hold together, each an equal part; None: half of the machine's.
        idle_seconds: a client may take between two batches of an answer.
        ticket_seconds: an answer waits to be asked for.
        prepared_seconds: a prepared statement is kept after its latest use.
        kept: prepared statements at a time, and tickets at a time.
    """

    statements: int = 8
    queue_seconds: float = 10.0
    statement_seconds: float | None = None
    memory: int | None = None
    idle_seconds: float = 300.0
    ticket_seconds: float = 300.0
    prepared_seconds: float = 3600.0
    kept: int = 1000


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """All of it.

    Attributes:
        host: an address of this machine.
        port: 0 for one that is free.
        token: that every call must bring; None: none.
        tls: how calls are encrypted; None: not at all.
        read_only: refuse statements that change anything.
        allowed_directories: whose files statements may name, besides nothing.
        settings: others of the statements' sessions, by name.
        limits: see there.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    tls: TlsFiles | None = None
    read_only: bool = False
    allowed_directories: tuple[Path, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    limits: ServerLimits = field(default_factory=ServerLimits)
