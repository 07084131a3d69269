import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compose import engine
from tests.compose.releases import ATTRIBUTES, compared_with_truth
from tests.compose.stack import Stack, until
from veiltab.common.errors import UnavailableError
from veiltab.common.study.file import load_study
from veiltab.play.compose.prepare import prepare
from veiltab.play.studies.adult_tables import truth

ROOT = Path(__file__).parents[2]


def test_only_root_gets_an_engine_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only root can start one" in engine.unavailable_because()


def test_waiting_ends_with_what_is_missing() -> None:
    with pytest.raises(UnavailableError, match="still bob"):
        until(lambda: "still bob", within=0)
    until(lambda: "", within=0)


class FakeStack(Stack):
    """Answers `estimate` with given fractions."""

    shares: Any

    def researcher(self, *args: str) -> dict[str, Any]:
        assert args[0] == "estimate"
        domain = load_study(self.folder / "study.toml").domain(ATTRIBUTES.split(","))
        return {
            "rows": [
                {
                    "labels": dict(zip(domain.names, domain.categories_of(cell), strict=True)),
                    "estimate": share,
                    "se": 4e-4,
                }
                for cell, share in enumerate(self.shares)
            ]
        }


def test_the_compared_with_truth_is_told_from_a_wrong_one(tmp_path: Path) -> None:
    prepare(tmp_path / "adult")
    stack = FakeStack(engine=engine.Engine(), folder=tmp_path / "adult", project="p", image="i")
    true = truth() / truth().sum()
    # Fixed "noise" within two standard errors.
    noisy = true + 4e-4 * np.resize([2.0, -1.0, 0.5], true.shape)
    asked = {"release": {"id": "0" * 32}}
    object.__setattr__(stack, "shares", noisy.tolist())
    assert "at most 2.0 standard errors" in compared_with_truth(stack, asked)
    wrong = noisy.copy()
    wrong[[3, 4]] = wrong[[4, 3]]
    object.__setattr__(stack, "shares", wrong.tolist())
    with pytest.raises(AssertionError, match="from the truth"):
        compared_with_truth(stack, asked)
