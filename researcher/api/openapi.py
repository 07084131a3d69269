"""The OpenAPI 3.1 description of what can be asked, made from the resources."""

from collections.abc import Sequence
from importlib.metadata import version
from types import NoneType
from typing import Any

from veiltab.researcher.api.resource import Resource
from veiltab.researcher.api.tokens import Scope
from veiltab.researcher.api.vocabulary import Parameter

_NUMBER_OR_NULL, _TEXT_OR_NULL = (0.0, None), ("", None)
_ABOUT = {"id": "", "label": "", "state": "", "attributes": [""], "epsilon": "", "study_digest": ""}
_TABLES = [{"number": 0, "phase": 0, "id": "", "state": "", "attributes": [""]}]
_SPENT = {"parties": {...: {"state": "", "waiting_for": ""}}, "seconds": {...: 0.0}, "bytes": {...: 0.0}}
_RELEASE = {"release": _ABOUT, "granted": [""], "tables": _TABLES, "receipts": [{}], "failure": "", **_SPENT}
_INTERVAL = {"estimate": _NUMBER_OR_NULL, "low": _NUMBER_OR_NULL, "high": _NUMBER_OR_NULL}
_ATTRIBUTE = {"name": "", "owner": "", "holders": [""], "categories": [""], "is_number": False}
_STUDY = {"id": "", "title": "", "digest": "", "party": "", "budget_epsilon": "", "budget_delta": _TEXT_OR_NULL}
_SIZES = {"population": 0, "cells": 0, "tables": 0, "epsilon": 0.0, "delta": _NUMBER_OR_NULL, "error": 0.0}
_COST = {"asked": "", **_SIZES, "cell_error": _NUMBER_OR_NULL, "feasible": False, "advice": ""}
_FROM = {"release": _ABOUT, "study": "", "confidence": 0.0, "covered": False, "study_digest": ""}
_TABLE = {
    "attributes": [""],
    "codebook": {...: [""]},
    "root_mse": 0.0,
    "few_rows": False,
    "respondents": "",
    "remarks": [""],
}
_ANALYSIS = {"title": "", "unit": "", "measured": False, "along": "", "facts": {...: 0.0}, "remarks": [""]}
_DIMENSION = {"id": "", "attribute": "", "codes": [{"id": "", "name": ""}]}

_EXAMPLES: dict[str, object] = {
    "Study": {**_STUDY, "attributes": [_ATTRIBUTE]},
    "Plan": {**_COST, "share": _NUMBER_OR_NULL, "errors": [{"attributes": [""], "error": 0.0}]},
    "Release": _RELEASE,
    "ReleaseList": {"releases": [_RELEASE], "next": _TEXT_OR_NULL},
    "Table": {**_FROM, **_TABLE, "rows": [{"labels": {...: ""}, **_INTERVAL}]},
    "Analysis": {**_FROM, **_ANALYSIS, "rows": [{"labels": {...: ""}, **_INTERVAL, "note": ""}]},
    "Codebook": {"dimensions": [_DIMENSION], "measures": {...: ""}},
    "Problem": {"type": "", "title": "", "status": 0, "detail": "", "where": "", "remedy": ""},
}
"""Name -> an answer; ... stands for every name."""

_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", NoneType: "null"}


def _schema_of(example: Any) -> dict[str, Any]:  # noqa: ANN401 - of JSON
    match example:
        case tuple():
            return {"anyOf": [_schema_of(one) for one in example]}
        case [one]:
            return {"type": "array", "items": _schema_of(one)}
        case dict() if ... in example:
            return {"type": "object", "additionalProperties": _schema_of(example[...])}
        case dict() if example:
            properties = {name: _schema_of(one) for name, one in example.items()}
            return {"type": "object", "required": list(example), "properties": properties}
    return {"type": _KINDS[type(example)]}


SCHEMAS = {name: _schema_of(example) for name, example in _EXAMPLES.items()}
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
    token = {"type": "http", "scheme": "bearer", "description": "Made by `veiltab researcher token add`."}
    certificate = {"type": "mutualTLS", "description": "The certificate of the party that is served."}
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
        "components": {"schemas": SCHEMAS, "securitySchemes": {"token": token, "certificate": certificate}},
    }


def _operation(resource: Resource) -> dict[str, Any]:
    reference = {"schema": {"$ref": f"#/components/schemas/{resource.schema}"}}
    content = {kind: reference if kind == "application/json" else {} for kind in resource.media_types}
    done = {"202" if resource.method == "POST" else "200": {"description": "Done.", "content": content}}
    operation: dict[str, Any] = {
        "operationId": resource.name,
        "summary": resource.summary,
        "description": f"A token needs the scope {resource.scope.value}." if resource.scope is not Scope.READ else "",
        "parameters": [_RELEASE_NAME] if "{release}" in resource.path else [],
        "responses": done | dict.fromkeys(_REFUSALS, _REFUSED),
    }
    if resource.method == "POST":
        body = {
            "type": "object",
            "required": [parameter.name for parameter in resource.parameters if parameter.is_required],
            "properties": {each.name: each.schema | {"description": each.description} for each in resource.parameters},
            "additionalProperties": False,
        }
        return operation | {"requestBody": {"required": True, "content": {"application/json": {"schema": body}}}}
    operation["responses"]["304"] = {"description": "Nothing has changed since the ETag that was sent."}
    operation["parameters"] += [_in_query(parameter) for parameter in resource.parameters]
    return operation


def _in_query(parameter: Parameter) -> dict[str, Any]:
    facts = {"name": parameter.name, "in": "query", "required": parameter.is_required}
    return facts | {"description": parameter.description, "schema": parameter.schema}
