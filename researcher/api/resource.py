"""Something that can be asked over HTTP, and what it is answered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veiltab.common.command.cli import json_text
from veiltab.researcher.api.tokens import Scope
from veiltab.researcher.api.vocabulary import Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a request is answered.

    Args:
        body: bytes, or a file that is sent and then deleted with its folder.
        after: called when it was sent.
    """

    body: bytes | Path
    media_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    after: Callable[[], object] = lambda: None


def json_answer(data: Mapping[str, object], status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return data as JSON."""
    return Answer(body=json_text(data).encode(), status=status, headers=headers or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something that can be asked.

    Args:
        name: of the operation, in the description.
        path: with {release} for the name of a release.
        parameters: of the query, or of the body of a POST.
        schema: of a JSON answer: a name among the components of the description.
        is_computed: whether it takes a processor, and so waits for its turn.
        handle: answers, given the parts of the path and the parameters that were given.
    """

    name: str
    method: str
    path: str
    scope: Scope
    summary: str
    parameters: tuple[Parameter, ...] = ()
    media_types: tuple[str, ...] = ("application/json",)
    schema: str = ""
    is_computed: bool = True
    handle: Callable[..., Answer]
    status: int = 200


def optional(name: str, kind: Any, description: str, default: Any = None) -> Parameter:  # noqa: ANN401 - a type
    """Return a parameter that may be left out."""
    return Parameter(name=name, kind=kind, default=default, is_required=False, description=description)
