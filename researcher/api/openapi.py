"""The OpenAPI 3.1 description of what can be asked, made from the resources."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from veiltab.researcher.api.resource import Resource
from veiltab.researcher.api.tokens import Scope

_TEXT, _WHOLE, _NUMBER, _FLAG = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
_NONE = {"type": "null"}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, _NONE]}


def _map(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def _record(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


_ABOUT = _record(id=_TEXT, label=_TEXT, state=_TEXT, attributes=_list(_TEXT), epsilon=_TEXT, study_digest=_TEXT)
_RELEASE = _record(
    release=_ABOUT,
    granted=_list(_TEXT),
    tables=_list(_record(number=_WHOLE, phase=_WHOLE, id=_TEXT, state=_TEXT, attributes=_list(_TEXT))),
    receipts=_list({"type": "object"}),
    failure=_TEXT,
    parties=_map(_record(state=_TEXT, waiting_for=_TEXT)),
    seconds=_map(_NUMBER),
    bytes=_map(_NUMBER),
)
_INTERVAL = {"estimate": _or_null(_NUMBER), "low": _or_null(_NUMBER), "high": _or_null(_NUMBER)}

SCHEMAS: dict[str, dict[str, Any]] = {
    "Study": _record(
        id=_TEXT,
        title=_TEXT,
        digest=_TEXT,
        party=_TEXT,
        budget_epsilon=_TEXT,
        budget_delta=_or_null(_TEXT),
        attributes=_list(_record(name=_TEXT, owner=_TEXT, categories=_list(_TEXT), is_number=_FLAG)),
    ),
    "Plan": _record(
        asked=_TEXT,
        population=_WHOLE,
        cells=_WHOLE,
        tables=_WHOLE,
        epsilon=_NUMBER,
        delta=_or_null(_NUMBER),
        error=_NUMBER,
        cell_error=_or_null(_NUMBER),
        feasible=_FLAG,
        advice=_TEXT,
        share=_or_null(_NUMBER),
        errors=_list(_record(attributes=_list(_TEXT), error=_NUMBER)),
    ),
    "Release": _RELEASE,
    "ReleaseList": _record(releases=_list(_RELEASE), next=_or_null(_TEXT)),
    "Table": _record(
        release=_ABOUT,
        study=_TEXT,
        attributes=_list(_TEXT),
        study_digest=_TEXT,
        codebook=_map(_list(_TEXT)),
        confidence=_NUMBER,
        cells=_list(_record(cell=_map(_TEXT), **_INTERVAL)),
        root_mse=_NUMBER,
        few_rows=_FLAG,
        respondents=_TEXT,
    ),
    "Analysis": _record(
        release=_ABOUT,
        study=_TEXT,
        title=_TEXT,
        unit=_TEXT,
        confidence=_NUMBER,
        measured=_FLAG,
        study_digest=_TEXT,
        rows=_list(_record(labels=_map(_TEXT), **_INTERVAL, note=_TEXT)),
        facts=_map(_NUMBER),
        remarks=_list(_TEXT),
    ),
    "Codebook": _record(
        dimensions=_list(_record(id=_TEXT, attribute=_TEXT, codes=_list(_record(id=_TEXT, name=_TEXT)))),
        measures=_map(_TEXT),
    ),
    "Problem": _record(type=_TEXT, title=_TEXT, status=_WHOLE, detail=_TEXT, where=_TEXT, remedy=_TEXT),
}
"""Name -> JSON Schema of what answers have."""

PROBLEM = "application/problem+json"
_REFUSED = {
    "description": "What was wrong, where, and what to do next (RFC 9457).",
    "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_REFUSALS = ("400", "401", "403", "404", "405", "406", "408", "409", "410", "411", "413", "415", "500", "503")
_RELEASE_NAME = {
    "name": "release",
    "in": "path",
    "required": True,
    "description": "Label of a release, its id, or the beginning of its id.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 100},
}


def description(resources: Sequence[Resource]) -> dict[str, Any]:
    """Return the OpenAPI document of some resources."""
    paths: dict[str, dict[str, Any]] = {}
    for one in resources:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "veiltab, a researcher's service",
            "version": version("veiltab"),
            "description": "Numbers that are exact, such as an epsilon, travel as texts. Every answer has an ETag.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"certificate": []}],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Made by `veiltab researcher token add`."},
                "certificate": {"type": "mutualTLS", "description": "The certificate of the party that is served."},
            },
        },
    }


def _operation(one: Resource) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for media_type in one.media_types:
        is_json = media_type == "application/json"
        content[media_type] = {"schema": {"$ref": f"#/components/schemas/{one.schema}"} if is_json else {}}
    place = [_RELEASE_NAME] if "{release}" in one.path else []
    operation: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "description": f"A token needs the scope {one.scope.value}." if one.scope is not Scope.READ else "",
        "parameters": place,
        "responses": {str(one.status): {"description": "Done.", "content": content}}
        | dict.fromkeys(_REFUSALS, _REFUSED),
    }
    if one.method == "POST":
        body = {
            "type": "object",
            "required": [parameter.name for parameter in one.parameters if parameter.is_required],
            "properties": {
                parameter.name: parameter.schema | {"description": parameter.description}
                for parameter in one.parameters
            },
            "additionalProperties": False,
        }
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    else:
        operation["responses"]["304"] = {"description": "Nothing has changed since the ETag that was sent."}
        operation["parameters"] = place + [
            {
                "name": parameter.name,
                "in": "query",
                "required": parameter.is_required,
                "description": parameter.description,
                "schema": parameter.schema,
            }
            for parameter in one.parameters
        ]
    return operation
