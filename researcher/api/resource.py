"""Something that can be asked over HTTP, and what it is answered."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from starlette.responses import Response

from veiltab.common.command.cli import json_text
from veiltab.common.dataclass import dataclass
from veiltab.researcher.api.tokens import Scope
from veiltab.researcher.api.vocabulary import Parameter, parameters_of

_JSON = "application/json"
Handler = TypeVar("Handler", bound=Callable[..., Response])


def answered(content: str | bytes, media_type: str = _JSON, status: int = 200, **headers: str) -> Response:
    """Return what a request is answered."""
    return Response(content, status, {"Content-Type": media_type, **headers})


def json_answer(data: Mapping[str, object], status: int = 200, **headers: str) -> Response:
    """Return data as JSON."""
    return answered(json_text(data), status=status, **headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something that can be asked.

    Args:
        name: of the operation, in the description.
        path: with {release} for the name of a release.
        schema: of a JSON answer: a name among the components of the description.
        media_types: of answers.
        is_computed: whether it takes a processor, and so waits for its turn.
        handle: answers, given the parts of the path and the parameters that were given.
        summary: the first line of what documents `handle`.
        parameters: of the query, or of the body of a POST.
    """

    name: str
    method: str
    path: str
    scope: Scope
    schema: str
    media_types: tuple[str, ...]
    is_computed: bool
    handle: Callable[..., Response]
    summary: str
    parameters: tuple[Parameter, ...]


RESOURCES: list[Resource] = []
"""All of them; their functions take the object that answers first."""


def resource_at(
    path: str,
    schema: str = "",
    *media_types: str,
    scope: Scope = Scope.READ,
    takes: tuple[Parameter, ...] = (),
    is_computed: bool = True,
) -> Callable[[Handler], Handler]:
    """Make what a function answers a resource.

    Args:
        path: with {release} for the name of a release, which the function takes first.
        takes: parameters that the function hands on, beside its own.
    """

    def add(handle: Handler) -> Handler:
        resource = Resource(
            name=re.sub("_(.)", lambda match: match[1].upper(), handle.__name__),
            method="POST" if scope is Scope.REQUEST else "GET",
            path=path,
            scope=scope,
            schema=schema,
            media_types=media_types or (_JSON,),
            is_computed=is_computed,
            handle=handle,
            summary=(inspect.getdoc(handle) or "").partition("\n")[0],
            parameters=(*parameters_of(handle, ("release",)), *takes),
        )
        RESOURCES.append(resource)
        return handle

    return add
