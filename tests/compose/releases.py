"""Releases through the containers, as rosa: ask for one, and compare its estimates with the truth."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.compose.stack import Stack
from veiltab.common.study.file import load_study
from veiltab.play.studies.adult_tables import truth

ATTRIBUTES = "education,marital,sex,salary"
EPSILON, DELTA = "0.5", "1e-6"

LARGEST_Z = 5.8
"""No estimate is farther from the truth, in standard errors: alpha = 24 cells * 6.6e-9 = 1.6e-7 a release."""


def ask(stack: Stack, label: str, *, wait: bool = False) -> dict[str, Any]:
    """Ask for a release as rosa, or continue it."""
    patience = ("--wait", "--timeout", "150") if wait else ()
    asked = ("--attributes", ATTRIBUTES, "--epsilon", EPSILON, "--delta", DELTA, "--label", label)
    answer = stack.researcher("request", *asked, *patience)
    assert not wait or answer["release"]["state"] == "ready", f"it is {answer['release']['state']}"
    return answer


def compared_with_truth(stack: Stack, asked: Mapping[str, Any]) -> str:
    """Compare a release's estimates with the true table; return the error in words."""
    cells = stack.researcher("estimate", "--release", asked["release"]["id"])["rows"]
    domain = load_study(stack.folder / "study.toml").domain(ATTRIBUTES.split(","))
    named = [dict(zip(domain.names, domain.categories_of(cell), strict=True)) for cell in range(domain.cells)]
    assert [cell["labels"] for cell in cells] == named, "the cells are not those of the study"
    true = truth() / truth().sum()
    estimate, errors = (np.array([cell[name] for cell in cells]) for name in ("estimate", "se"))
    largest = float(np.max(np.abs(estimate - true) / errors))
    assert largest <= LARGEST_Z, f"an estimate is {largest:.1f} standard errors from the truth"
    # The comparison must be able to fail: neighbouring cells hold other people.
    assert float(np.max(np.abs(estimate - np.roll(true, 1)) / errors)) > LARGEST_Z, "any table would do"
    return f"error {np.linalg.norm(estimate - true):.5f}, at most {largest:.1f} standard errors"
