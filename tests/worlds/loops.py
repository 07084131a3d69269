"""Event loops in tests: one for a coroutine that is called like any function, and turns for all that wait."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")


def blocking(work: Callable[_Asked, Coroutine[Any, Any, _Answer]]) -> Callable[_Asked, _Answer]:
    """Let a coroutine function be called like any other: each call runs it in an event loop of its own."""

    @wraps(work)
    def run(*args: _Asked.args, **kwargs: _Asked.kwargs) -> _Answer:
        return asyncio.run(work(*args, **kwargs))

    return run


async def turns() -> None:
    """Let everything happen that can."""
    for _ in range(10):
        await asyncio.sleep(0)
