import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from veiltab.common.errors import UnavailableError
from veiltab.common.study.file import load_study
from veiltab.deploy.compose import check, engine
from veiltab.deploy.compose.check import Report
from veiltab.deploy.compose.prepare import prepare
from veiltab.deploy.compose.releases import ATTRIBUTES, right_answer
from veiltab.deploy.compose.stack import BrokenError, Stack, until
from veiltab.deploy.studies.adult_tables import truth


def test_without_an_engine_it_says_why_and_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "running_engine", lambda: None)
    monkeypatch.setattr(check, "unavailable_because", lambda: "no engine")
    result = CliRunner().invoke(check.command, [])
    assert (result.exit_code, result.output) == (0, "skipped: no engine\n")


def test_only_root_gets_an_engine_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only root can start one" in engine.unavailable_because()


def test_no_client_is_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine.running_engine() is None
    (tmp_path / "docker").write_text("#!/bin/sh\necho 'Cannot connect' >&2\nexit 1\n", "utf-8")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert engine.running_engine() is None


def test_a_report_counts_failures_of_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> str:
        raise BrokenError("the wall has a hole")

    def crashed() -> str:
        raise subprocess.TimeoutExpired("docker", 3)

    report = Report()
    assert report.step("good", lambda: "fine") == "fine"
    assert report.step("bad", broken) is None
    assert report.step("worse", crashed) is None
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok", "FAILED", "FAILED"]
    assert lines[0].endswith(": fine")
    assert "the wall has a hole" in lines[1]
    assert "TimeoutExpired" in lines[2]
    assert (report.done, report.failed) == (3, 2)


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
            "cells": [
                {
                    "cell": dict(zip(domain.names, domain.categories_of(cell), strict=True)),
                    "estimate": share,
                    "se": 4e-4,
                }
                for cell, share in enumerate(self.shares)
            ]
        }


def test_the_right_answer_is_told_from_a_wrong_one(tmp_path: Path) -> None:
    prepare(tmp_path / "adult")
    stack = FakeStack(engine=engine.Engine(), folder=tmp_path / "adult", project="p", image="i")
    true = truth() / truth().sum()
    # Fixed "noise" within two standard errors.
    noisy = true + 4e-4 * np.resize([2.0, -1.0, 0.5], true.shape)
    asked = {"release": {"id": "0" * 32}}
    object.__setattr__(stack, "shares", noisy.tolist())
    assert "at most 2.0 standard errors" in right_answer(stack, asked)
    wrong = noisy.copy()
    wrong[[3, 4]] = wrong[[4, 3]]
    object.__setattr__(stack, "shares", wrong.tolist())
    with pytest.raises(BrokenError, match="from the truth"):
        right_answer(stack, asked)
