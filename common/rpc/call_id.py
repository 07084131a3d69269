"""The id of the call that is being answered, so that all its log lines are found by one of them."""

import secrets
from contextvars import ContextVar

_current: ContextVar[str] = ContextVar("request", default="")


def begin_request() -> str:
    """Give the call of this task a random id, 16 hexadecimal digits; what it starts carries it too."""
    _current.set(secrets.token_hex(8))
    return _current.get()


def current_request() -> str:
    """Return the id of the call that is being answered, or nothing outside of calls."""
    return _current.get()
