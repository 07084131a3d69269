"""What a client may do over HTTPS, and the interface of what answers it."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

MOST_CONNECTIONS = 2048
"""Connections at a time; a request on a further one is answered with 503."""

SECONDS = 20.0
"""Longest that a request may take to arrive, headers included."""

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]
"""An ASGI application."""
