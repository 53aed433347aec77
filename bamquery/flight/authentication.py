"""Who may call: whoever brings the token, as a bearer's or as a password."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any

from pyarrow import flight

from bamquery.flight.log import Log


class OpenHandshake(flight.ServerAuthHandler):
    """Lets clients shake hands; what counts is the header of each call, handshakes included."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Nothing is said in a handshake but its headers."""
        del outgoing, incoming

    def is_valid(self, token: Any) -> Any:
        """There is one identity."""
        del token
        return b""


class _Answer(flight.ServerMiddleware):
    """Tells a client that brought a password what to bring from now on."""

    def __init__(self, authorization: str | None) -> None:
        self._authorization = authorization

    def sending_headers(self) -> Any:
        """Headers of the answer."""
        return {} if self._authorization is None else {"authorization": self._authorization}


class TokenMiddleware(flight.ServerMiddlewareFactory):
    """Refuses calls without the token, before anything else looks at them."""

    def __init__(self, token: str, log: Log) -> None:
        """With the one token that there is."""
        self._digest = _digest(token.encode())
        self._bearer = f"Bearer {token}"
        self._log = log

    def start_call(self, info: Any, headers: Any) -> _Answer:
        """Look at a call.

        Raises:
            FlightUnauthenticatedError: it has no token, or another one.
        """
        found = [
            value for name, values in headers.items() if name.lower() == "authorization" for value in values
        ]
        said = found[0] if len(found) == 1 else ""
        said = said.decode("latin-1") if isinstance(said, bytes) else str(said)
        kind, _, rest = said.partition(" ")
        given = _password(rest) if kind.lower() == "basic" else rest.strip().encode()
        if kind.lower() not in ("basic", "bearer") or not hmac.compare_digest(_digest(given), self._digest):
            reason = "wrong token" if said else "no token"
            self._log.write("refused", reason=reason, method=str(info.method))
            raise flight.FlightUnauthenticatedError(
                "the call has no token that counts here: send it as a bearer token, or as a password"
            )
        return _Answer(self._bearer if kind.lower() == "basic" else None)


def _digest(token: bytes) -> bytes:
    # Of one length, so that comparing takes as long for any.
    return hashlib.sha256(token).digest()


def _password(text: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""
