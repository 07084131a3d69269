import pytest

from veiltab.deploy.compose.runtime import needed, superfluous


def test_what_runs_stays_and_tools_go() -> None:
    kept, gone = needed("veiltab"), set(superfluous("veiltab"))
    assert {"veiltab", "grpcio", "protobuf", "numpy", "cryptography", "cffi", "click"} <= kept
    assert {"pytest", "mypy", "ruff", "hatchling", "grpcio-tools", "prometheus-client"} <= gone
    assert not kept & gone


def test_an_extra_stays_with_what_it_needs() -> None:
    assert "prometheus-client" in needed("veiltab", ["metrics"])
    assert {"opentelemetry-sdk", "opentelemetry-api"} <= needed("veiltab", ["otel"])


def test_an_unknown_extra_is_refused() -> None:
    with pytest.raises(ValueError, match="no extra nonsense"):
        needed("veiltab", ["nonsense"])
