"""Messages between a learner and an evaluator: JSON objects in frames that only a holder of the key can have written.

A frame is its length in four bytes, then its body. Each side proves that it has the key by an HMAC over a number that
the other drew; from then on a body begins with an HMAC over the direction, its place in the order, and the JSON text,
so that nothing can be inserted, repeated or changed on the way. Nothing is hidden: use a tunnel where that matters.
What comes from a socket is parsed as JSON and never unpickled.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
import socket
from typing import Any

PROTOCOL = 1
GREETING_BYTES = 1024  # a frame before both sides have shown the key
FRAME_BYTES = 8 << 20
_MAC_BYTES = 32

Message = dict[str, Any]


class BadFrame(ValueError):
    """What came is no frame of the other side."""


class Seal:
    """Signs the bodies of one direction of one connection, or checks them; each in its order."""

    def __init__(self, session_key: bytes, direction: str):
        self._key, self._direction, self._count = session_key, direction, 0

    def close(self, message: Message) -> bytes:
        """The frame of a message."""
        text = _text(message)
        return frame(self._mac(text) + text)

    def open(self, body: bytes) -> Message:
        """The message in a body. BadFrame: it was not signed with the key, or not here and now."""
        mac, text = body[:_MAC_BYTES], body[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(text)):
            raise BadFrame("a message that was not signed with the shared key")
        return parse(text)

    def _mac(self, text: bytes) -> bytes:
        place = f"{self._direction} {self._count} ".encode()
        self._count += 1
        return hmac.digest(self._key, place + text, hashlib.sha256)


def nonce() -> str:
    return secrets.token_hex(32)


def proof(key: bytes, side: str, server_nonce: str, client_nonce: str) -> str:
    """What shows that `side`, "server" or "client", has the key."""
    return hmac.new(key, f"{PROTOCOL} {side} {server_nonce} {client_nonce}".encode(), hashlib.sha256).hexdigest()


def session_key(key: bytes, server_nonce: str, client_nonce: str) -> bytes:
    return bytes.fromhex(proof(key, "session", server_nonce, client_nonce))


def frame(body: bytes) -> bytes:
    if len(body) > FRAME_BYTES:
        raise ValueError(f"a message of {len(body)} bytes, expected at most {FRAME_BYTES}")
    return len(body).to_bytes(4, "big") + body


def plain(message: Message) -> bytes:
    """The frame of a message that nobody signs: the greeting."""
    return frame(_text(message))


def parse(text: bytes) -> Message:
    """A JSON object with a `kind`. BadFrame: anything else."""
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"not JSON: {error}") from error
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise BadFrame("not a message: expected an object with a kind")
    return message


async def read(reader: asyncio.StreamReader, limit: int) -> bytes:
    """The next body. BadFrame: longer than `limit`. IncompleteReadError: the other side has gone."""
    length = int.from_bytes(await reader.readexactly(4), "big")
    if length > limit:
        raise BadFrame(f"a frame of {length} bytes, expected at most {limit}")
    return await reader.readexactly(length)


def receive(connection: socket.socket, limit: int) -> bytes:
    """The next body. BadFrame as in `read`; EOFError: the other side has gone; OSError of the socket."""
    length = int.from_bytes(_exactly(connection, 4), "big")
    if length > limit:
        raise BadFrame(f"a frame of {length} bytes, expected at most {limit}")
    return _exactly(connection, length)


def keep_alive(connection: socket.socket) -> None:
    """Notices within a minute that the other host has gone without a word."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 60_000)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _text(message: Message) -> bytes:
    return json.dumps(message, allow_nan=False).encode()
