import os
from pathlib import Path

import pytest

from tests.compose import engine
from tests.compose.stack import until
from veiltab.common.errors import UnavailableError

ROOT = Path(__file__).parents[2]


def test_only_root_gets_an_engine_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only root can start one" in engine.unavailable_because()


def test_waiting_ends_with_what_is_missing() -> None:
    with pytest.raises(UnavailableError, match="still bob"):
        until(lambda: "still bob", within=0)
    until(lambda: "", within=0)
