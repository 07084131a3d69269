"""What is logged is a constant text and fields that are known to hold no data."""

import ast
from functools import cache
from pathlib import Path

from tests.rooms import rooms

ROOT = Path(__file__).parents[1]
PACKAGES = rooms()
METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
FIELDS = {
    *("step", "state", "release", "round", "attribute", "curator", "party", "seconds", "bytes", "reports", "way"),
    *("outcome", "reason", "error", "rpc"),
}
STEP_FIELDS = {"release_id", "round_id", "attribute", "size", "reports"}


@cache
def all_calls() -> list[tuple[Path, ast.Call]]:
    return [
        (path, node)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    ]


def calls() -> list[tuple[Path, str, ast.Call]]:
    return [
        (path, node.func.attr, node)
        for path, node in all_calls()
        if isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in {"_log", "log", "logger", "logging"}
        and node.func.attr in METHODS
    ]


def test_messages_are_constant_texts() -> None:
    assert calls()
    for path, method, call in calls():
        message = call.args[1 if method == "log" else 0]
        assert isinstance(message, ast.Constant), f"{path.relative_to(ROOT)}:{call.lineno}"
        assert method != "exception", "a traceback shows values"


def test_extra_fields_are_known() -> None:
    for path, _, call in calls():
        for keyword in call.keywords:
            assert keyword.arg == "extra", f"{path.relative_to(ROOT)}:{call.lineno}"
            assert isinstance(keyword.value, ast.Dict)
            names = {key.value for key in keyword.value.keys if isinstance(key, ast.Constant)}
            assert names <= FIELDS, f"{path.relative_to(ROOT)}:{call.lineno}"


def test_steps_are_constant_texts_about_what_is_public() -> None:
    found = [(path, call) for path, call in all_calls() if isinstance(call.func, ast.Name) and call.func.id == "step"]
    assert len(found) > 15
    for path, call in found:
        place = f"{path.relative_to(ROOT)}:{call.lineno}"
        assert len(call.args) == 1, place
        assert isinstance(call.args[0], ast.Constant), place
        assert {keyword.arg for keyword in call.keywords} <= STEP_FIELDS, place
